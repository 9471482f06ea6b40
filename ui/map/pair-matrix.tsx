import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Pair } from "../model/peers.ts";
import type { Health } from "../parts/mark.tsx";

/** Pixels of a pair: 50 nodes fit beside a side panel. */
const largest = 14;
const smallest = 4;
const fitting = 700;

const colours: Readonly<Record<Health, string>> = {
  good: "--good",
  warn: "--warn",
  bad: "--bad",
  unknown: "--line",
};

interface MatrixProps {
  readonly names: readonly string[];
  /** In the order of `pairsOf`. */
  readonly pairs: readonly Pair[];
  readonly onChoose: (node: string) => void;
}

/** Every node against every other: a row says what one says of all. */
export function PairMatrix({ names, pairs, onChoose }: MatrixProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const at = useSignal({ row: 0, column: 1 });
  const scheme = useSignal(0);
  const size = Math.max(smallest, Math.min(largest, Math.floor(fitting / names.length)));
  const pairAt = (row: number, column: number): Pair | undefined =>
    row === column ? undefined : pairs[row * (names.length - 1) + (column > row ? column - 1 : column)];
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const onScheme = (): void => void scheme.value++;
    dark.addEventListener("change", onScheme);
    return () => dark.removeEventListener("change", onScheme);
  }, []);
  useEffect(() => {
    const element = canvas.current;
    if (element !== null) draw(element, names.length, size, pairAt, at.value);
  }, [pairs, names.length, size, at.value, scheme.value]);
  const { row, column } = at.value;
  const move = (rows: number, columns: number): void => {
    const within = (value: number): number => Math.min(names.length - 1, Math.max(0, value));
    at.value = { row: within(row + rows), column: within(column + columns) };
  };
  const steps: Readonly<Record<string, readonly [number, number]>> = {
    ArrowRight: [0, 1],
    ArrowLeft: [0, -1],
    ArrowDown: [1, 0],
    ArrowUp: [-1, 0],
  };
  const pair = pairAt(row, column);
  const text = pair === undefined ? `${names[row] ?? ""}: itself` : `${pair.from} says of ${pair.to}: ${pair.word}`;
  return (
    <div>
      <div class="scroll">
        <canvas
          ref={canvas}
          class="strip"
          role="slider"
          tabIndex={0}
          aria-label="What each node says of each other one"
          aria-valuemin={0}
          aria-valuemax={names.length ** 2 - 1}
          aria-valuenow={row * names.length + column}
          aria-valuetext={text}
          onClick={(event) => {
            const [x, y] = [Math.floor(event.offsetX / size), Math.floor(event.offsetY / size)];
            if (x < names.length && y < names.length) at.value = { row: y, column: x };
          }}
          onKeyDown={(event) => {
            const step = steps[event.key];
            if (step === undefined) return;
            event.preventDefault();
            move(...step);
          }}
        />
      </div>
      <p class="told">
        {text}{" "}
        <button type="button" onClick={() => onChoose(names[row] ?? "")}>
          Show {names[row]}
        </button>
      </p>
    </div>
  );
}

function draw(
  element: HTMLCanvasElement,
  count: number,
  size: number,
  pairAt: (row: number, column: number) => Pair | undefined,
  chosen: { readonly row: number; readonly column: number },
): void {
  const scale = window.devicePixelRatio || 1;
  const side = count * size;
  element.width = side * scale;
  element.height = side * scale;
  element.style.setProperty("--width", `${side}px`);
  element.style.setProperty("--height", `${side}px`);
  const context = element.getContext("2d");
  if (context === null) return;
  context.scale(scale, scale);
  const style = getComputedStyle(element);
  for (let row = 0; row < count; row++)
    for (let column = 0; column < count; column++) {
      const health = pairAt(row, column)?.health;
      if (health === undefined) continue;
      const [x, y] = [column * size, row * size];
      context.fillStyle = style.getPropertyValue(colours[health]);
      // What is not fine is larger too, for those who do not see the colour.
      const inset = health === "good" ? size * 0.3 : 0.5;
      context.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
    }
  context.strokeStyle = style.getPropertyValue("--text");
  context.lineWidth = 2;
  context.strokeRect(chosen.column * size, chosen.row * size, size, size);
}
