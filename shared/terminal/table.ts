import { printable } from "./printable.ts";

/**
 * Rows of text in columns, two blanks apart; the last column is not padded. Cells are escaped, so that their content
 * cannot break the table.
 */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(printable));
  const widths: number[] = [];
  for (const row of cells) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, widthOf(cell));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell + " ".repeat((widths[i] ?? 0) - widthOf(cell))))
      .join("  ");
  return cells.map((row) => `${line(row)}\n`).join("");
}

/** The width in columns of a terminal. */
const widthOf = (text: string): number => Bun.stringWidth(text);

const units = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
] as const;

/** The two greatest units, `3d4h`; a time in the future, after a step of the clock, reads as now. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  for (const [i, [unit, size]] of units.entries()) {
    if (seconds < size) continue;
    const [smaller, smallerSize] = units[i + 1] ?? ["s", 1];
    const rest = Math.floor((seconds % size) / smallerSize);
    return `${Math.floor(seconds / size)}${unit}${rest === 0 ? "" : `${rest}${smaller}`}`;
  }
  return `${seconds}s`;
}
