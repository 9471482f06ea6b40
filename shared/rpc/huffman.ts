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

interface CodeTable {
  /** By length: the first code of that length, how many there are, and where their symbols begin. */
  readonly first: readonly number[];
  readonly count: readonly number[];
  readonly start: readonly number[];
  readonly symbols: readonly number[];
}

/** A decoder that builds its table when the first string needs it. */
export function createHuffmanDecoder(): (bytes: Uint8Array) => string | undefined {
  let table: CodeTable | undefined;
  return (bytes) => {
    table ??= buildTable();
    return decodeWith(table, bytes);
  };
}

function buildTable(): CodeTable {
  const byLength: number[][] = Array.from({ length: longestCode + 1 }, () => []);
  for (let symbol = 0; symbol < endOfString; symbol++)
    byLength[Number.parseInt(codeLengths.charAt(symbol), 36)]?.push(symbol);
  byLength[longestCode]?.push(endOfString);
  const first: number[] = [];
  const count: number[] = [];
  const start: number[] = [];
  const symbols: number[] = [];
  let code = 0;
  for (const group of byLength) {
    first.push(code);
    count.push(group.length);
    start.push(symbols.length);
    for (const symbol of group) symbols.push(symbol);
    code = (code + group.length) * 2;
  }
  return { first, count, start, symbols };
}

/** One character per byte; `undefined` for a string with the end symbol in it, or with wrong padding (section 5.2). */
function decodeWith(table: CodeTable, bytes: Uint8Array): string | undefined {
  const { first, count, start, symbols } = table;
  let text = "";
  let code = 0;
  let length = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1);
      length++;
      const offset = code - (first[length] ?? 0);
      if (offset < (count[length] ?? 0)) {
        const symbol = symbols[(start[length] ?? 0) + offset] ?? endOfString;
        if (symbol === endOfString) return undefined;
        text += String.fromCharCode(symbol);
        code = 0;
        length = 0;
      }
    }
  }
  return length < 8 && code === 2 ** length - 1 ? text : undefined;
}
