import { useSignal } from "@preact/signals";
import { type FollowedAnswer, readFollowed, readTrace, type TraceAnswer } from "../model/answers.ts";
import { podName } from "../model/pods.ts";
import { Choice, Picker } from "../parts/choice.tsx";
import type { Health } from "../parts/mark.tsx";
import { Card, Page } from "../parts/page.tsx";
import { Told, useRunning } from "../parts/running.tsx";
import { refine, route } from "../route.ts";
import { can } from "../stream/connection.ts";
import { documentsOf } from "../stream/store.ts";
import { PathPicture, type Stop } from "./trace-path.tsx";

/** How a packet's way is found, as far as it can be from here. */
const modes = [
  { name: "simulated", command: "trace", title: "as the switch would do" },
  { name: "injected", command: "inject", title: "by a packet that is sent" },
  { name: "live", command: "live", title: "of the next connection" },
  { name: "dropped", command: "live", title: "of the next that is dropped" },
] as const;

/** Only switches tell, each for its node: by their own tracer on it, or by their agents. */
export const isTraceThere = (): boolean =>
  modes.some(({ command }) => can(command)) &&
  documentsOf("node").some(({ document }) => document?.dataPath.startsWith("ovs") ?? false);

export function Trace() {
  const { from = "", to = "", protocol = "icmp", port = "", how = "" } = route.value.query;
  const there = modes.filter(({ command }) => can(command));
  const mode = there.find(({ name }) => name === how) ?? there[0];
  const [state, run] = useRunning();
  const asked = useSignal("");
  const names = documentsOf("pods").flatMap(({ document }) => (document?.pods ?? []).map(podName));
  const json = state.value.t === "answered" ? state.value.answer.json : undefined;
  const followed = readFollowed(json);
  const answer = followed === undefined ? readTrace(json) : undefined;
  const isComplete = from !== "" && to !== "" && (protocol === "icmp" || port !== "");
  return (
    <Page title="Trace" health={healthOf(answer, followed)} answer={answerOf(answer, followed, asked.value)}>
      <form
        class="bar card"
        onSubmit={(event) => {
          event.preventDefault();
          asked.value = `${from} to ${to}`;
          const packet = protocol === "icmp" ? {} : { protocol, port };
          const only = mode?.name === "dropped" ? { dropped: "yes" } : {};
          void run({ name: mode?.command ?? "trace", fields: { from, to, ...packet, ...only } });
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
        {there.length > 1 && (
          <Choice
            label="How"
            value={mode?.title ?? ""}
            of={there.map(({ title }) => title)}
            onChange={(value) => refine({ how: there.find(({ title }) => title === value)?.name ?? "" })}
          />
        )}
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
      {followed !== undefined && <FollowedWay answer={followed} />}
      <Told of={state.value} />
    </Page>
  );
}

const healthOf = (answer: TraceAnswer | undefined, followed: FollowedAnswer | undefined): Health => {
  if (followed !== undefined) return ends[followed.end] ?? "unknown";
  return answer === undefined ? "unknown" : answer.isDropped ? "bad" : "good";
};

const ends: Readonly<Record<string, Health>> = {
  ...{ delivered: "good", forwardedOutOfNetwork: "good", forwarded: "good" },
  ...{ dropped: "bad", rejected: "bad", lost: "bad" },
};

/** Where does the packet stop? */
function answerOf(answer: TraceAnswer | undefined, followed: FollowedAnswer | undefined, asked: string): string {
  if (followed !== undefined) return `${followed.source} to ${followed.destination}: ${followed.verdict}.`;
  if (answer !== undefined) return `${answer.client} to ${answer.server}: ${answer.verdict}.`;
  return asked === "" ? "Choose who sends to whom, and how its way is found." : `${asked}.`;
}

/** From node to node. */
function FollowedWay({ answer }: { readonly answer: FollowedAnswer }) {
  const { source, destination, nodes, end, verdict, lastSeen, remarks } = answer;
  const isBad = ends[end] === "bad";
  const last =
    isBad || ends[end] === undefined
      ? { title: end, kind: "drop" as const }
      : { title: destination, kind: "end" as const };
  const stops: readonly Stop[] = [
    { title: source, kind: "end" },
    ...nodes.flatMap(({ node, steps }) => [
      { title: `node ${node}`, kind: "node" } as const,
      ...steps.map(({ table }) => ({ title: table, kind: "step" }) as const),
    ]),
    last,
  ];
  return (
    <>
      {nodes.length > 0 && (
        <Card title="The way">
          <PathPicture stops={stops} verdict={verdict} />
        </Card>
      )}
      {nodes.map(({ node, dataPath, steps }) => (
        <Card key={node} title={`Node ${node}`}>
          <p class="quiet">{dataPath}</p>
          <ol class="steps">
            {steps.map(({ table, action, text }, i) => (
              <li key={i}>
                <b>{table}</b> <span class="quiet">{action}</span>
                <br />
                {text}
              </li>
            ))}
          </ol>
        </Card>
      ))}
      <Card title="Where it ended">
        <p class={isBad ? "bad" : ""}>{verdict}</p>
        {lastSeen !== "" && <p>Last seen at {lastSeen}</p>}
        {remarks.map((remark) => (
          <p key={remark} class="quiet">
            {remark}
          </p>
        ))}
      </Card>
    </>
  );
}

const stopsOf = (answer: TraceAnswer): readonly Stop[] => [
  { title: answer.client, kind: "end" },
  ...answer.steps.map(({ table }) => ({ title: table, kind: "step" }) as const),
  { title: answer.isDropped ? "dropped" : answer.server, kind: answer.isDropped ? "drop" : "end" },
];

function Way({ answer }: { readonly answer: TraceAnswer }) {
  return (
    <>
      <Card title="The way">
        <PathPicture stops={stopsOf(answer)} verdict={answer.verdict} />
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
