import { readWhy, type WhyAnswer } from "../model/answers.ts";
import { podName } from "../model/pods.ts";
import { Choice, Picker } from "../parts/choice.tsx";
import { Mark } from "../parts/mark.tsx";
import { Card } from "../parts/page.tsx";
import { Told, useRunning } from "../parts/running.tsx";
import { refine, route } from "../route.ts";
import { documentsOf } from "../stream/store.ts";

/** May one reach the other, and which rules say so. */
export function Why() {
  const { from = "", to = "", port = "", protocol = "TCP" } = route.value.query;
  const [state, run] = useRunning();
  const names = documentsOf("pods").flatMap(({ document }) => (document?.pods ?? []).map(podName));
  const answer = state.value.t === "answered" ? readWhy(state.value.answer.json) : undefined;
  return (
    <Card title="May one reach the other?">
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          void run({ name: "why", fields: { from, to, ...(port === "" ? {} : { port, protocol }) } });
        }}
      >
        <Picker label="From" value={from} of={names} hint="a pod" onChange={(value) => refine({ from: value })} />
        <Picker
          label="To"
          value={to}
          of={names}
          hint="a pod, service/NAME or an address"
          onChange={(value) => refine({ to: value })}
        />
        <span class="field">
          <label for="why-port">Port</label>
          <input
            id="why-port"
            size={6}
            value={port}
            placeholder="any"
            onInput={(event) => refine({ port: event.currentTarget.value })}
          />
        </span>
        <Choice
          label="Protocol"
          value={protocol}
          of={["TCP", "UDP", "SCTP"]}
          onChange={(value) => refine({ protocol: value })}
        />
        <button type="submit" class="main" disabled={from === "" || to === "" || state.value.t === "runs"}>
          Ask
        </button>
      </form>
      {answer !== undefined && <Answer answer={answer} />}
      <Told of={state.value} />
    </Card>
  );
}

function Answer({ answer }: { readonly answer: WhyAnswer }) {
  const health = answer.allowed === "all" ? "good" : answer.allowed === "none" ? "bad" : "warn";
  return (
    <>
      <p class="told">
        <Mark health={health}>{answer.sentence}</Mark>
      </p>
      {answer.cases.map(({ ports, isAllowed, sides }) => (
        <section key={`${ports} ${isAllowed} ${sides.map(({ says }) => says).join()}`}>
          <h3>
            <Mark health={isAllowed ? "good" : "bad"}>
              {isAllowed ? "allowed" : "refused"} at {ports}
            </Mark>
          </h3>
          <ul>
            {sides.map(({ says, rules }) => (
              <li key={says}>
                {says}
                {rules.length > 0 && (
                  <ul>
                    {rules.map((rule) => (
                      <li key={rule}>{rule}</li>
                    ))}
                  </ul>
                )}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}
