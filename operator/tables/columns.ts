/** One column of a table. */
export interface Column<Row> {
  /** In capitals. */
  readonly title: string;
  readonly of: (row: Row, atMs: number) => string;
  /** Only with `-o wide`. */
  readonly wide?: true;
}

/** What stands where there is nothing, so that programs that split at blanks count the same columns. */
export const nothing = "-";

/** Values in a cell; the rest is counted. */
const maxInCell = 3;

export function listText(values: readonly string[], all = false): string {
  if (values.length === 0) return nothing;
  if (all || values.length <= maxInCell) return values.join(",");
  return `${values.slice(0, maxInCell).join(",")} and ${values.length - maxInCell} more`;
}

export const orNothing = (text: string | number | undefined): string =>
  text === undefined || text === "" ? nothing : String(text);

/** `namespace/name`. */
export const podText = ({ podNamespace, podName }: { podNamespace?: string; podName?: string }): string =>
  podName === undefined ? nothing : `${podNamespace ?? ""}/${podName}`;

/** Long enough to tell sandboxes apart, as runtimes' own tools show them. */
export const shortId = (id: string): string => (id.length > 13 ? id.slice(0, 13) : id);

/** `1234567` as `1.2M`. */
export function amountText(amount: number): string {
  if (amount < 1000) return String(amount);
  const units = ["k", "M", "G", "T", "P"];
  let [value, unit] = [amount, ""];
  for (const next of units) {
    if (value < 1000) break;
    [value, unit] = [value / 1000, next];
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** Of microseconds. */
export function tookText(micros: number): string {
  if (micros < 1_000) return `${micros}us`;
  if (micros < 1_000_000) return `${(micros / 1_000).toFixed(micros < 10_000 ? 1 : 0)}ms`;
  return `${(micros / 1_000_000).toFixed(1)}s`;
}
