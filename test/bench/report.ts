import os from "node:os";
import { passes, type Row } from "./row.ts";

const digits = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

/** The table for people. */
export function table(rows: readonly Row[]): string {
  const head = ["measure", "cache", "ours med", "p90", "peer med", "p90", "value", "budget", "aim", ""];
  const body = rows.map((row) => [
    row.measure,
    row.cache ?? "",
    row.ours === undefined ? "" : `${digits(row.ours.median)} ms`,
    row.ours === undefined ? "" : digits(row.ours.p90),
    row.peer === undefined ? "" : `${digits(row.peer.median)} ms`,
    row.peer === undefined ? "" : digits(row.peer.p90),
    row.unit === "ratio"
      ? `x ${digits(row.value)}`
      : row.unit === "count"
        ? String(row.value)
        : `${digits(row.value)} ${row.unit}`,
    String(row.budget ?? ""),
    String(row.aim ?? ""),
    verdict(row),
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((line) => (line[column] ?? "").length)));
  return [head, ...body]
    .map((line) =>
      line
        .map((cell, i) => (i <= 1 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function verdict(row: Row): string {
  if (row.budget === undefined) return "";
  if (!passes(row)) return "FAIL";
  return row.aim !== undefined && row.value <= row.aim ? "pass, aim met" : "pass";
}

/** One JSON line per row, each complete in itself: date, machine and versions stand on every line. */
export function jsonLines(rows: readonly Row[], versions: Readonly<Record<string, string>>): string {
  const machine = { cpu: os.cpus()[0]?.model.trim() ?? "", cores: os.cpus().length, kernel: os.release() };
  const date = new Date().toISOString();
  return rows.map((row) => JSON.stringify({ date, ...row, pass: passes(row), machine, versions })).join("\n");
}
