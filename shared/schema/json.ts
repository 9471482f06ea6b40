import { limits } from "../limits.ts";

/**
 * As `JSON.parse`, for text that came from outside. The language reads what is nested a hundred thousand deep; whatever
 * then walks it, if only to quote it, runs for seconds and ends in a full stack.
 * @throws {SyntaxError} whose message continues a sentence, also for what is nested more than `limits.jsonDepth` deep
 */
export function parseJson(text: string): unknown {
  // A short text cannot be nested so deeply that it matters: a plugin's configuration is not looked at twice.
  if (text.length > limits.jsonShortChars && isTooDeep(text))
    throw new SyntaxError(`it is nested more than ${limits.jsonDepth} deep`);
  return JSON.parse(text);
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) i = endOfString(text, i);
    else if (code === openBracket || code === openBrace) {
      if (++depth > limits.jsonDepth) return true;
    } else if (code === closeBracket || code === closeBrace) depth--;
  }
  return false;
}

/** The place of the quote that ends the string, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === backslash) i++;
    else if (code === quote) return i;
  }
  return text.length;
}

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
