import { CniCode, CniError } from "../errors.ts";

type Expected = "value" | "value or end" | "key" | "key or end" | "colon" | "comma or end";

const blanks = " \t\n\r";
const words = ["true", "false", "null"];
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Where a text stops being JSON, for a person with an editor: ` (line 3, column 5)`, both from 1; empty where it is JSON. */
export function faultPlace(text: string): string {
  const offset = faultOffset(text);
  if (offset === undefined) return "";
  const before = text.slice(0, offset).split("\n");
  return ` (line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1})`;
}

/** Adds the place of the fault to the error of `Fields.parse`; in a file of its own, because no plugin needs it. */
export function withFaultPlace(caught: unknown, text: string): unknown {
  if (!(caught instanceof CniError) || caught.code !== CniCode.decode || text.trim() === "") return caught;
  const wanted = caught.message.lastIndexOf(", wanted ");
  const message = `${caught.message.slice(0, wanted)}${faultPlace(text)}${caught.message.slice(wanted)}`;
  return new CniError(caught.code, message, { details: caught.details, cause: caught.cause });
}

/** In code units; the text's length where it ends too early. */
function faultOffset(text: string): number | undefined {
  const open: string[] = [];
  let expected: Expected = "value";
  for (let at = 0; ; ) {
    while (at < text.length && blanks.includes(text.charAt(at))) at++;
    if (at >= text.length) return expected === "comma or end" && open.length === 0 ? undefined : text.length;
    const char = text.charAt(at);
    const step = stepOver(text, at, expected, open);
    if (step === undefined) return at;
    if (char === '"' && step.end < 0) return at;
    [at, expected] = [step.end, step.expected];
  }
}

interface Step {
  /** The offset behind what was read; negative for a string that has no end or holds an invalid character. */
  readonly end: number;
  readonly expected: Expected;
}

/** Reads one sign, word, number or string; `undefined` where another was expected. `open` follows. */
function stepOver(text: string, at: number, expected: Expected, open: string[]): Step | undefined {
  const char = text.charAt(at);
  if (expected === "colon") return char === ":" ? { end: at + 1, expected: "value" } : undefined;
  if (expected === "comma or end") {
    const around = open.at(-1);
    if (char === "," && around !== undefined) return { end: at + 1, expected: around === "{" ? "key" : "value" };
    return closing(char, at, open);
  }
  if (expected === "key" || expected === "key or end") {
    if (char === '"') return { end: endOfString(text, at), expected: "colon" };
    return expected === "key or end" ? closing(char, at, open) : undefined;
  }
  if (expected === "value or end" && char === "]") return closing(char, at, open);
  if (char === "{" || char === "[") {
    open.push(char);
    return { end: at + 1, expected: char === "{" ? "key or end" : "value or end" };
  }
  if (char === '"') return { end: endOfString(text, at), expected: "comma or end" };
  const word = words.find((candidate) => text.startsWith(candidate, at));
  if (word !== undefined) return { end: at + word.length, expected: "comma or end" };
  number.lastIndex = at;
  return number.test(text) ? { end: number.lastIndex, expected: "comma or end" } : undefined;
}

function closing(char: string, at: number, open: string[]): Step | undefined {
  if (char !== "}" && char !== "]") return undefined;
  if (open.at(-1) !== (char === "}" ? "{" : "[")) return undefined;
  open.pop();
  return { end: at + 1, expected: "comma or end" };
}

const escapes = '"\\/bfnrtu';

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '"') return at + 1;
    if (char < " ") return -1;
    if (char === "\\" && !escapes.includes(text.charAt(++at))) return -1;
  }
  return -1;
}
