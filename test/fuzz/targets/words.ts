import { CniCode, CniError } from "../../../shared/errors.ts";

/** Longer than any sentence with a list in it; what is quoted from outside is cut before that. */
const maxChars = 4096;

/** What commands a terminal, forges a line of a log, or turns the direction of writing around. */
const commanding = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Sentences of the language's own, that nobody outside can do anything with. */
const native =
  /undefined is not|null is not|is not a function|is not an object|is not iterable|Maximum call stack|Invalid array length|Out of memory|out of bounds|Assertion/;

/** @throws where a text for people holds what it must not */
export function requireHarmless(text: string, what: string): void {
  const hit = commanding.exec(text);
  if (hit !== null) {
    const code = hit[0].codePointAt(0)?.toString(16);
    throw new Error(`${what} holds the character U+${code}`);
  }
  if (!text.isWellFormed()) throw new Error(`${what} holds half a character`);
  if (text.length > maxChars) throw new Error(`${what} is longer than ${maxChars} characters`);
}

/** @throws where a message is not one of our sentences */
export function requireSentence(text: string, what: string): void {
  requireHarmless(text, what);
  if (!text.startsWith("Cannot ")) throw new Error(`${what} does not read "Cannot …"`);
  const hit = native.exec(text);
  if (hit !== null) throw new Error(`${what} holds "${hit[0]}"`);
}

/** @throws what was caught, unless it is a clear error of the product */
export function requireCniError(caught: unknown): void {
  if (!(caught instanceof CniError)) throw caught;
  try {
    requireSentence(caught.message, "the message of a CNI error");
    if (caught.code === CniCode.internal) throw new Error("an internal error");
    if (!Number.isSafeInteger(caught.code)) throw new Error("a code that is no number");
  } catch (wrong) {
    throw new Error((wrong as Error).message, { cause: caught });
  }
}

/** Runs what may refuse with a CNI error and with nothing else. */
export function refusable<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (caught) {
    requireCniError(caught);
    return undefined;
  }
}

export const textOf = (input: Uint8Array): string => new TextDecoder().decode(input);

/** Parsed JSON, or nothing: what inputs of several parts are wrapped in. */
export function jsonOf(input: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(input));
  } catch {
    return undefined;
  }
}
