/**
 * How many bits the code of each byte has, 5 to 30, in base 36 (RFC 7541, appendix B). The code is
 * canonical, shorter before longer and then by the byte's value, so the lengths are all there is to know.
 */
const codeLengths =
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca" +
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds" +
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq";

const longestCode = 30;
const endOfString = 256;

/** The code of HTTP/2 header strings. Made when the first string needs it, for it costs more than a short string. */
export interface HuffmanCode {
  /**
   * Calls `visit` with each byte of the string and the place of its code in bits. `false` for what is no such
   * string: the end symbol in it, or wrong padding (section 5.2).
   */
  walk(bytes: Uint8Array, visit: (symbol: number, atBit: number, bits: number) => void): boolean;
  /** The code of a byte, and its length in bits. */
  codeOf(symbol: number): { readonly code: number; readonly bits: number };
}

export function createHuffmanCode(): HuffmanCode {
  const { first, start, symbols } = buildTables();
  return {
    walk(bytes, visit) {
      let code = 0;
      let bits = 0;
      for (let at = 0; at < bytes.length * 8; at++) {
        code = code * 2 + (((bytes[at >> 3] ?? 0) >> (7 - (at & 7))) & 1);
        bits++;
        // Codes of one length follow each other, and the next length begins right behind them.
        const place = (start[bits] ?? 0) + code - (first[bits] ?? 0);
        if (place >= (start[bits + 1] ?? 0)) continue;
        const symbol = symbols[place] ?? endOfString;
        if (symbol === endOfString) return false;
        visit(symbol, at + 1 - bits, bits);
        code = 0;
        bits = 0;
      }
      return bits < 8 && code === 2 ** bits - 1;
    },
    codeOf(symbol) {
      const bits = lengthOf(symbol);
      return { code: (first[bits] ?? 0) + symbols.indexOf(symbol) - (start[bits] ?? 0), bits };
    },
  };
}

const lengthOf = (symbol: number): number => Number.parseInt(codeLengths.charAt(symbol), 36);

/** By length: the first code, and where its symbols begin among all of them in the order of their codes. */
function buildTables(): { first: number[]; start: number[]; symbols: number[] } {
  const groups: number[][] = Array.from({ length: longestCode + 1 }, () => []);
  for (let symbol = 0; symbol < endOfString; symbol++) groups[lengthOf(symbol)]?.push(symbol);
  groups[longestCode]?.push(endOfString);
  const first: number[] = [];
  const start: number[] = [];
  const symbols: number[] = [];
  let code = 0;
  for (const group of groups) {
    first.push(code);
    start.push(symbols.length);
    for (const symbol of group) symbols.push(symbol);
    code = (code + group.length) * 2;
  }
  start.push(symbols.length);
  return { first, start, symbols };
}
