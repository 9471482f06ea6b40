/**
 * Names of pods, sandboxes and interfaces come from outside, so they may hold anything: sequences that command a
 * terminal, line ends that forge a row or a line of a log, marks that turn the direction of writing around, halves of
 * characters that no reader takes. Here such text becomes what may be shown.
 */

/** Text of one line as a terminal may have it: what could command it stands there as `\u001b`. */
export function printable(text: string): string {
  if (isPlain(text)) return text;
  // Made where it is needed: what a plugin makes at its start it pays for at each.
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escaped);
}

/** The same for a text of our own with several lines. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

/** Text that is quoted from outside, cut before it is all that is left of the sentence around it. */
export function brief(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = maxChars - 3;
  // Not through the middle of a character.
  const cut = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end - 1 : end;
  return `${text.slice(0, cut)}...`;
}

/** As almost all text is; asked without a regular expression, whose first use takes a tenth of a millisecond. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || code > 126) return false;
  }
  return true;
}

const escaped = (char: string): string =>
  char
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

/** `1 lease`, `2 leases`. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
