import { useEffect, useRef } from "preact/hooks";
import { cellStates, paintCell } from "./cell-paint.ts";

const size = 12;

/** What the cells of a strip mean. */
export function Legend() {
  return (
    <ul class="legend">
      {Object.entries(cellStates).map(([letter, { word }]) => (
        <li key={letter}>
          <Sample letter={letter} />
          {word}
        </li>
      ))}
    </ul>
  );
}

function Sample({ letter }: { readonly letter: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = (): void => {
      element.width = size;
      element.height = size;
      const context = element.getContext("2d");
      if (context !== null) paintCell(context, letter, { x: 0, y: 0, size }, getComputedStyle(element));
    };
    draw();
    dark.addEventListener("change", draw);
    return () => dark.removeEventListener("change", draw);
  }, [letter]);
  return (
    <span aria-hidden="true">
      <canvas ref={canvas} class="sample" />
    </span>
  );
}
