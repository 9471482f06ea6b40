import { printable } from "../printable.ts";

export { counted, printable, printableLines } from "../printable.ts";

/**
 * JSON for programs that is safe on a terminal too. Whole numbers of any size stay exact: an IPv6 network has more
 * addresses than a double can count.
 */
export function formatJson(value: unknown): string {
  const exact = (_key: string, inner: unknown): unknown =>
    typeof inner === "bigint" ? rawJson(inner.toString()) : inner;
  const text = JSON.stringify(value, exact, 2);
  // Splits at the line ends of the layout; those inside strings are escaped already.
  return `${text.split("\n").map(printable).join("\n")}\n`;
}

/** `JSON.rawJSON` is in ECMAScript since 2025, but not yet in the compiler's library. */
const rawJson = (text: string): unknown => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(text);
