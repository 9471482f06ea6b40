import os from "node:os";
import type { StormFigures } from "./storm.ts";

const head = ["storm", "", "pods", "s", "verb", "calls", "p50 ms", "p99 ms", "max ms", "deadline", "wrong"];

/** The table for people: a line for each verb of each storm, and what was wrong below it. */
export function stormTable(all: readonly StormFigures[]): string {
  const body = all.flatMap(({ storm, of, pods, seconds, verbs, wrong }) =>
    verbs.map(({ verb, n, p50, p99, max, deadline }, i) => [
      ...(i === 0 ? [storm, of, String(pods), seconds.toFixed(1)] : ["", "", "", ""]),
      ...[verb, String(n), ...[p50, p99, max, deadline].map((ms) => ms.toFixed(0))],
      i === 0 ? String(wrong.length) : "",
    ]),
  );
  const rows = [head, ...body];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const isText = (column: number): boolean => column < 2 || column === 4;
  const lines = rows.map((row) =>
    row
      .map((cell, i) => (isText(i) ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
  const faults = all.flatMap(({ storm, of, wrong }) => wrong.slice(0, 5).map((text) => `${storm}, ${of}: ${text}`));
  return [...lines, ...faults].join("\n");
}

/** One JSON line per storm, each complete in itself. */
export function stormLines(all: readonly StormFigures[], versions: Readonly<Record<string, string>>): string {
  const machine = { cpu: os.cpus()[0]?.model.trim() ?? "", cores: os.cpus().length, kernel: os.release() };
  const date = new Date().toISOString();
  return all.map((figures) => JSON.stringify({ date, ...figures, machine, versions })).join("\n");
}
