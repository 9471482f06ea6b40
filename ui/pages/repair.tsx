import { readRepair, readRepairable } from "../model/answers.ts";
import { Mark } from "../parts/mark.tsx";
import { Card } from "../parts/page.tsx";
import { Told, useRunning } from "../parts/running.tsx";
import { counted } from "../parts/words.ts";

/** Looks again and says what would be done; does it only after that, at a button of its own. */
export function Repair() {
  const [looked, look] = useRunning();
  const [done, repair] = useRunning();
  const wishes = looked.value.t === "answered" ? readRepairable(looked.value.answer.json) : [];
  const result = done.value.t === "answered" ? readRepair(done.value.answer.json) : undefined;
  return (
    <Card title="Repair">
      <p>
        <button
          type="button"
          disabled={looked.value.t === "runs"}
          onClick={() => {
            done.value = { t: "none" };
            void look({ name: "doctor", fields: {} });
          }}
        >
          Show what a repair would do
        </button>
      </p>
      {looked.value.t === "answered" && wishes.length === 0 && (
        <p>Nothing is left that can be repaired by itself: what disagreed was passing.</p>
      )}
      {wishes.length > 0 && result === undefined && (
        <>
          <ul>
            {wishes.map(({ what, todo }) => (
              <li key={what}>
                {what}: <b>{todo}</b>
              </li>
            ))}
          </ul>
          <p>
            <button
              type="button"
              class="main"
              disabled={done.value.t === "runs"}
              onClick={() => void repair({ name: "repair", fields: {} })}
            >
              Do {counted(wishes.length, "repair")} now
            </button>{" "}
            <code>pipette doctor --repair</code>
          </p>
        </>
      )}
      <Told of={done.value.t === "none" ? looked.value : done.value} />
      {result !== undefined && (
        <ul>
          {result.repaired.map(({ what, done: word, error }) => (
            <li key={what}>
              <Mark health={error === "" ? "good" : "bad"}>
                {what}: {error === "" ? word : error}
              </Mark>
            </li>
          ))}
          <li>{result.left === 0 ? "Now all agree." : `${counted(result.left, "finding")} left.`}</li>
        </ul>
      )}
    </Card>
  );
}
