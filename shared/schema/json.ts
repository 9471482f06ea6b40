/** The deepest nesting of JSON from outside; a configuration has about ten levels. */
export const maxDepth = 256;

/** A text of this length may be nested at will: walking it takes less than a millisecond. */
const shortChars = 16 * 1024;

/**
 * As `JSON.parse`, for text that came from outside. `JSON.parse` accepts a nesting of a hundred thousand levels, but
 * any code that walks the result, even to quote it, would run for seconds and overflow the stack.
 * @throws {SyntaxError} whose message continues a sentence, also for what is nested more than `maxDepth` deep
 */
export function parseJson(text: string): unknown {
  // A short text cannot be nested deeply enough to matter, so a plugin's configuration is not scanned twice.
  if (text.length > shortChars && isTooDeep(text)) throw new SyntaxError(`it is nested more than ${maxDepth} deep`);
  return JSON.parse(text);
}

function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) i = endOfString(text, i);
    else if (code === openBracket || code === openBrace) {
      if (++depth > maxDepth) return true;
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
