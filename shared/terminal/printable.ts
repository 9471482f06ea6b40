import { printable } from "../printable.ts";

export { counted, printable, printableLines } from "../printable.ts";

/**
 * JSON for programs that is harmless on a terminal too. Whole numbers of any size stay exact: an IPv6 network has
 * more addresses than a double can count.
 */
export function formatJson(value: unknown): string {
  const exact = (_key: string, inner: unknown): unknown =>
    typeof inner === "bigint" ? rawJson(inner.toString()) : inner;
  const text = JSON.stringify(value, exact, 2);
  // Only the line ends that JSON itself is laid out with are meant; all others stand inside strings, escaped.
  return `${text.split("\n").map(printable).join("\n")}\n`;
}

/** ECMAScript has it since 2025, the compiler's library not yet. */
const rawJson = (text: string): unknown => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);
