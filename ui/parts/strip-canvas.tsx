import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { addressesIn, type Strip } from "../model/cells.ts";
import { cellStates, paintCell } from "./cell-paint.ts";

/** Pixels of a cell with the gap behind it: large enough to be hit with a finger on most of it. */
const cellSize = 14;
const gap = 2;

interface StripProps {
  readonly strip: Strip;
  readonly title: string;
  /** The cell that is chosen. */
  readonly chosen: number | undefined;
  readonly onChoose: (cell: number) => void;
}

/** A strip of addresses, one cell each. By keyboard it is a slider along the addresses. */
export function StripCanvas({ strip, title, chosen, onChoose }: StripProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const scheme = useSignal(0);
  const count = strip.cells.length;
  const columns = Math.max(1, Math.floor((width.value + gap) / cellSize));
  const rows = Math.ceil(count / columns);
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (element === null || element === undefined) return;
    const observer = new ResizeObserver(([entry]) => {
      width.value = Math.floor(entry?.contentRect.width ?? 0);
    });
    observer.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const onScheme = (): void => void scheme.value++;
    dark.addEventListener("change", onScheme);
    return () => {
      observer.disconnect();
      dark.removeEventListener("change", onScheme);
    };
  }, []);
  useEffect(() => {
    const element = canvas.current;
    if (element !== null && width.value > 0) draw(element, strip.cells, columns, rows, chosen);
  }, [strip.cells, columns, rows, chosen, width.value, scheme.value]);
  const at = chosen ?? 0;
  const steps: Readonly<Record<string, number>> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
    Home: -count,
    End: count,
  };
  return (
    <canvas
      ref={canvas}
      class="strip"
      role="slider"
      tabIndex={0}
      aria-label={title}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, count - 1)}
      aria-valuenow={at}
      aria-valuetext={cellText(strip, at)}
      onClick={(event) => {
        const column = Math.floor(event.offsetX / cellSize);
        const cell = Math.floor(event.offsetY / cellSize) * columns + column;
        if (column < columns && cell >= 0 && cell < count) onChoose(cell);
      }}
      onKeyDown={(event) => {
        const step = steps[event.key];
        if (step === undefined) return;
        event.preventDefault();
        onChoose(Math.min(count - 1, Math.max(0, at + step)));
      }}
    />
  );
}

/** Address and state, in words. */
export function cellText(strip: Strip, cell: number): string {
  const addresses = addressesIn(strip, cell);
  const state = cellStates[strip.cells[cell] ?? ""]?.word ?? "unknown";
  if (addresses === undefined) return state;
  const { first, last } = addresses;
  return first === last ? `${first}: ${state}` : `${first} to ${last}: ${state} among them`;
}

function draw(element: HTMLCanvasElement, cells: string, columns: number, rows: number, chosen?: number): void {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [columns * cellSize, rows * cellSize];
  element.width = width * scale;
  element.height = height * scale;
  element.style.setProperty("--width", `${width}px`);
  element.style.setProperty("--height", `${height}px`);
  const context = element.getContext("2d");
  if (context === null) return;
  context.scale(scale, scale);
  const style = getComputedStyle(element);
  for (let i = 0; i < cells.length; i++) {
    const [x, y] = [(i % columns) * cellSize, Math.floor(i / columns) * cellSize];
    paintCell(context, cells[i] ?? "", { x, y, size: cellSize - gap }, style);
    if (i !== chosen) continue;
    context.strokeStyle = style.getPropertyValue("--text");
    context.lineWidth = 2;
    context.strokeRect(x, y, cellSize - gap, cellSize - gap);
  }
}
