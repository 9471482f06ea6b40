/**
 * How many bits the code of each byte has, 5 to 30, in base 36 (RFC 7541, appendix B). The code is
 * canonical, shorter before longer and then by the byte's value, so the lengths are all there is to know.
 */
const codeLengths =
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca" +
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds" +
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq";

/** How many codes there are of each length from 0 on, the end symbol's included. */
const codeCounts = [
  0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];

const shortestCode = 5;

/** The code of HTTP/2 header strings. */
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
  const firstCodes = firstCodesByLength();
  /** The symbols of one length in the order of their codes, gathered when the first of them comes: few lengths do. */
  const groups: number[][] = [];
  const groupOf = (bits: number): number[] => {
    groups[bits] ??= symbolsOf(bits);
    return groups[bits];
  };
  return {
    walk(bytes, visit) {
      let code = 0;
      let bits = 0;
      const end = bytes.length * 8;
      for (let at = 0; at < end; at++) {
        code = code * 2 + (((bytes[at >> 3] ?? 0) >> (7 - (at & 7))) & 1);
        bits++;
        if (bits < shortestCode) continue;
        const place = code - (firstCodes[bits] ?? 0);
        if (place >= (codeCounts[bits] ?? 0)) continue;
        const symbol = groupOf(bits)[place];
        // The last code of all is the end symbol's, which no string may hold.
        if (symbol === undefined) return false;
        visit(symbol, at + 1 - bits, bits);
        code = 0;
        bits = 0;
      }
      return bits < 8 && code === 2 ** bits - 1;
    },
    codeOf(symbol) {
      const bits = Number.parseInt(codeLengths.charAt(symbol), 36);
      return { code: (firstCodes[bits] ?? 0) + groupOf(bits).indexOf(symbol), bits };
    },
  };
}

/** Codes of one length follow each other; the next length begins behind the last one, with a bit more. */
function firstCodesByLength(): number[] {
  const firstCodes: number[] = [];
  let code = 0;
  for (const count of codeCounts) {
    firstCodes.push(code);
    code = (code + count) * 2;
  }
  return firstCodes;
}

function symbolsOf(bits: number): number[] {
  const symbols: number[] = [];
  const digit = bits.toString(36);
  for (let at = codeLengths.indexOf(digit); at >= 0; at = codeLengths.indexOf(digit, at + 1)) symbols.push(at);
  return symbols;
}
