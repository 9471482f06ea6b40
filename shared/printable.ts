/**
 * Names of pods, sandboxes and interfaces come from outside and may hold anything: terminal control sequences, line
 * ends that forge rows or log lines, marks that reverse the writing direction, lone surrogates. Here such text is
 * escaped.
 */

/** Text of one line that is safe for a terminal: control characters become escapes such as `\u001b`. */
export function printable(text: string): string {
  if (isPlain(text)) return text;
  // Created here and not up front, because every plugin start would pay for it.
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, escaped);
}

/** The same for a text of our own with several lines. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

/** Shortens text that is quoted from outside, so that it does not crowd out the sentence around it. */
export function brief(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = maxChars - 3;
  // Not through the middle of a character.
  const cut = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end - 1 : end;
  return `${text.slice(0, cut)}...`;
}

/** Checked without a regular expression, whose first use takes a tenth of a millisecond; almost all text is plain. */
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
