import { useSignal } from "@preact/signals";
import { readWhatIf } from "../model/answers.ts";
import { Mark } from "../parts/mark.tsx";
import { Card } from "../parts/page.tsx";
import { Told, useRunning } from "../parts/running.tsx";
import { Table } from "../parts/table.tsx";
import { counted } from "../parts/words.ts";

/** What would change between pods, before anything is applied. */
export function WhatIf() {
  const text = useSignal("");
  const [state, run] = useRunning();
  const answer = state.value.t === "answered" ? readWhatIf(state.value.answer.json) : undefined;
  return (
    <Card title="What if?">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run({ name: "what-if", fields: { policies: text.value } });
        }}
      >
        <label for="what-if" class="quiet">
          NetworkPolicies in YAML or JSON, which are compared with those of the cluster and not applied
        </label>
        <textarea
          id="what-if"
          rows={8}
          spellcheck={false}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        <button type="submit" class="main" disabled={text.value.trim() === "" || state.value.t === "runs"}>
          Say what would change
        </button>
      </form>
      {answer !== undefined && (
        <>
          <p class="told">
            {answer.changes.length === 0
              ? "Nothing would change between pods that there are."
              : `${counted(answer.opened, "pair")} of pods would be opened, and ${answer.closed} closed.`}
          </p>
          <Table
            caption="What would change"
            columns={[
              {
                title: "Change",
                text: ({ change }) => change,
                cell: ({ change }) => <Mark health={change === "opened" ? "good" : "bad"}>{change}</Mark>,
              },
              { title: "From", text: ({ from }) => from },
              { title: "To", text: ({ to }) => to },
              { title: "At", text: ({ ports }) => ports },
              { title: "Pairs", text: ({ pairs }) => pairs, isNumber: true },
            ]}
            rows={answer.changes}
            keyOf={({ change, from, to, ports }) => `${change} ${from} ${to} ${ports}`}
            empty=""
          />
        </>
      )}
      <Told of={state.value} />
    </Card>
  );
}
