/**
 * Names of pods, sandboxes and interfaces come from outside, so they may hold anything: sequences that command a
 * terminal, line ends that forge a row, marks that turn the direction of writing around.
 */
const commanding = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

const escaped = (char: string): string =>
  char
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

/** Text of one line as a terminal may have it: what could command it stands there as `\u001b`. */
export const printable = (text: string): string => text.replace(commanding, escaped);

/** The same for a text of our own with several lines. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

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
