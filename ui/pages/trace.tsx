import { useSignal } from "@preact/signals";
import { readTrace, type TraceAnswer } from "../model/answers.ts";
import { podName } from "../model/pods.ts";
import { Choice, Picker } from "../parts/choice.tsx";
import type { Health } from "../parts/mark.tsx";
import { Card, Page } from "../parts/page.tsx";
import { Told, useRunning } from "../parts/running.tsx";
import { refine, route } from "../route.ts";
import { can } from "../stream/connection.ts";
import { documentsOf } from "../stream/store.ts";
import { PathPicture } from "./trace-path.tsx";

/** Only a switch tells what it would do, and only on its node. */
export const isTraceThere = (): boolean =>
  can("trace") && documentsOf("node").some(({ document }) => document?.dataPath.startsWith("ovs") ?? false);

export function Trace() {
  const { from = "", to = "", protocol = "icmp", port = "" } = route.value.query;
  const [state, run] = useRunning();
  const asked = useSignal("");
  const names = documentsOf("pods").flatMap(({ document }) => (document?.pods ?? []).map(podName));
  const answer = state.value.t === "answered" ? readTrace(state.value.answer.json) : undefined;
  const isComplete = from !== "" && to !== "" && (protocol === "icmp" || port !== "");
  return (
    <Page title="Trace" health={healthOf(answer)} answer={answerOf(answer, asked.value)}>
      <form
        class="bar card"
        onSubmit={(event) => {
          event.preventDefault();
          asked.value = `${from} to ${to}`;
          void run({ name: "trace", fields: { from, to, ...(protocol === "icmp" ? {} : { protocol, port }) } });
        }}
      >
        <Picker label="From" value={from} of={names} hint="a pod" onChange={(value) => refine({ from: value })} />
        <Picker
          label="To"
          value={to}
          of={names}
          hint="a pod or an address"
          onChange={(value) => refine({ to: value })}
        />
        <Choice
          label="Protocol"
          value={protocol}
          of={["icmp", "tcp", "udp"]}
          onChange={(value) => refine({ protocol: value })}
        />
        {protocol !== "icmp" && (
          <span class="field">
            <label for="port">Port</label>
            <input
              id="port"
              size={6}
              inputmode="numeric"
              value={port}
              onInput={(event) => refine({ port: event.currentTarget.value })}
            />
          </span>
        )}
        <button type="submit" class="main" disabled={!isComplete || state.value.t === "runs"}>
          Trace
        </button>
      </form>
      {answer !== undefined && <Way answer={answer} />}
      <Told of={state.value} />
    </Page>
  );
}

const healthOf = (answer: TraceAnswer | undefined): Health =>
  answer === undefined ? "unknown" : answer.isDropped ? "bad" : "good";

/** Where does the packet stop? */
function answerOf(answer: TraceAnswer | undefined, asked: string): string {
  if (answer !== undefined) return `${answer.client} to ${answer.server}: ${answer.verdict}.`;
  return asked === "" ? "Choose who sends to whom: no packet is sent, the switch says what it would do." : `${asked}.`;
}

function Way({ answer }: { readonly answer: TraceAnswer }) {
  return (
    <>
      <Card title="The way">
        <PathPicture answer={answer} />
      </Card>
      <Card title="Step by step">
        <ol class="steps">
          {answer.steps.map(({ table, match, decided }, i) => (
            <li key={i}>
              <b>{table}</b> <span class="quiet">{match}</span>
              <br />
              {decided.length === 0 ? "goes on" : decided.join("; ")}
            </li>
          ))}
          <li class={answer.isDropped ? "end bad" : "end"}>{answer.verdict}</li>
        </ol>
        {answer.next !== "" && (
          <p>
            To go on, on that node: <code>{answer.next}</code>
          </p>
        )}
      </Card>
    </>
  );
}
