import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type MatrixAnswer, readMatrix } from "../model/answers.ts";
import { Card } from "../parts/page.tsx";
import { Told, useRunning } from "../parts/running.tsx";
import { counted } from "../parts/words.ts";
import { refine } from "../route.ts";

/** Groups that are drawn at first, in both directions. */
const mostShown = 40;

const words: Readonly<Record<string, { readonly sign: string; readonly word: string; readonly look: string }>> = {
  "+": { sign: "●", word: "allowed", look: "all" },
  "-": { sign: "×", word: "refused", look: "none" },
  "%": { sign: "◐", word: "some ports", look: "some" },
};

/** Who reaches whom: pods that no policy tells apart are one row. */
export function MatrixCard() {
  const [state, run] = useRunning();
  useEffect(() => void run({ name: "matrix", fields: {} }), []);
  const matrix = state.value.t === "answered" ? readMatrix(state.value.answer.json) : undefined;
  return (
    <Card title="Who reaches whom">
      {matrix !== undefined && <Matrix matrix={matrix} />}
      <Told of={state.value} />
      <button
        type="button"
        disabled={state.value.t === "runs"}
        onClick={() => void run({ name: "matrix", fields: {} })}
      >
        Ask again
      </button>
    </Card>
  );
}

function Matrix({ matrix: { groups, rows, partly, omitted } }: { readonly matrix: MatrixAnswer }) {
  const chosen = useSignal<{ readonly from: number; readonly to: number } | undefined>(undefined);
  const shown = groups.slice(0, mostShown);
  if (groups.length === 0) return <p class="quiet">There are no pods that policies know</p>;
  const choose = (from: number, to: number): void => {
    chosen.value = { from, to };
    refine({ from: groups[from]?.pods[0] ?? "", to: groups[to]?.pods.at(-1) ?? "" });
  };
  const more = groups.length - shown.length + omitted;
  return (
    <>
      <p class="quiet">A row sends, a column receives: ● everything, ◐ some ports, × nothing.</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard. */}
      <section class="scroll" tabIndex={0} aria-label="Who reaches whom">
        <table class="matrix">
          <caption>Who reaches whom</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              {shown.map(({ name }, j) => (
                <th key={name} scope="col" title={name}>
                  <span>
                    {j + 1}
                    <span class="hidden"> {name}</span>
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ name }, i) => (
              <tr key={name}>
                <th scope="row">
                  {i + 1} {name}
                </th>
                {shown.map((to, j) => (
                  <td key={to.name}>
                    <Cell
                      letter={rows[i]?.[j] ?? ""}
                      pair={`${name} to ${to.name}`}
                      isChosen={chosen.value?.from === i && chosen.value.to === j}
                      onChoose={() => choose(i, j)}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {more > 0 && <p class="quiet">{counted(more, "group")} of pods more: pipette policy matrix -n NAMESPACE</p>}
      {chosen.value !== undefined && <p class="told">{chosenText(chosen.value)}</p>}
    </>
  );

  function chosenText({ from, to }: { readonly from: number; readonly to: number }): string {
    const { word } = words[rows[from]?.[to] ?? ""] ?? { word: "unknown" };
    const refused = partly.get(`${from} ${to}`);
    const pair = `${groups[from]?.name} to ${groups[to]?.name}`;
    return `${pair}: ${refused === undefined ? word : `not ${refused}`}. Above, two of these pods are chosen: ask why.`;
  }
}

interface CellProps {
  readonly letter: string;
  readonly pair: string;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}

function Cell({ letter, pair, isChosen, onChoose }: CellProps) {
  const { sign, word, look } = words[letter] ?? { sign: "?", word: "unknown", look: "some" };
  return (
    <button
      type="button"
      class={`cell ${look}`}
      aria-label={`${pair}: ${word}`}
      aria-pressed={isChosen}
      onClick={onChoose}
    >
      {sign}
    </button>
  );
}
