/**
 * How many bits the code of each byte has, 5 to 30, in base 36 (RFC 7541, appendix B). The code is canonical, shorter
 * before longer and then by the byte's value, so the lengths determine it.
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
/** So many that another byte fits in without reaching the sign bit. */
const windowBits = 23;

/** What decoding needs to know, made for one connection. */
export interface HuffmanTables {
  /** By length: codes of one length follow each other; the next length begins behind the last one, with a bit more. */
  readonly firstCodes: readonly number[];
  /** By length: the bytes in the order of their codes, computed on first use because few lengths occur. */
  readonly groups: string[];
}

export function createHuffmanTables(): HuffmanTables {
  const firstCodes: number[] = [];
  let code = 0;
  for (const count of codeCounts) {
    firstCodes.push(code);
    code = (code + count) * 2;
  }
  return { firstCodes, groups: [] };
}

/**
 * The string, one character per byte. `undefined` for what is none: the end symbol in it, or wrong padding
 * (section 5.2). Without closures and with few steps per byte: it runs in processes that have just started.
 */
export function huffmanDecode(tables: HuffmanTables, bytes: Uint8Array): string | undefined {
  const { firstCodes, groups } = tables;
  let text = "";
  // 23 to 30 bits at a time: most codes are found by one or two comparisons, in 32-bit arithmetic.
  let window = 0;
  let held = 0;
  let next = 0;
  for (;;) {
    while (held < windowBits && next < bytes.length) {
      window = (window << 8) | (bytes[next++] ?? 0);
      held += 8;
    }
    let bits = shortestCode;
    let place = 0;
    while (bits <= held) {
      place = (window >> (held - bits)) - (firstCodes[bits] ?? 0);
      if (place < (codeCounts[bits] ?? 0)) break;
      bits++;
    }
    if (bits <= held) {
      held -= bits;
      window &= (1 << held) - 1;
    } else if (next === bytes.length) {
      return held < 8 && window === (1 << held) - 1 ? text : undefined;
    } else {
      // One of the longest codes, whose last bits are in the next byte, outside the window.
      const byte = bytes[next++] ?? 0;
      let code = window;
      bits = held;
      for (held = 8; place >= (codeCounts[bits] ?? 0); place = code - (firstCodes[bits] ?? 0)) {
        code = code * 2 + ((byte >> --held) & 1);
        bits++;
      }
      window = byte & ((1 << held) - 1);
    }
    const group = groups[bits] ?? gather(groups, bits);
    // The last code of all is the end symbol's, which no string may hold.
    if (place >= group.length) return undefined;
    text += group[place];
  }
}

/** The string's code, padded with ones. The caller passes only characters of one byte. */
export function huffmanEncode(tables: HuffmanTables, text: string): Uint8Array {
  const bytes: number[] = [];
  let window = 0;
  let held = 0;
  for (const character of text) {
    const bits = Number.parseInt(codeLengths.charAt(character.charCodeAt(0)), 36);
    const group = tables.groups[bits] ?? gather(tables.groups, bits);
    // At most 7 bits wait for more, so this stays exact in a number.
    window = window * 2 ** bits + (tables.firstCodes[bits] ?? 0) + group.indexOf(character);
    for (held += bits; held >= 8; held -= 8) {
      bytes.push(Math.floor(window / 2 ** (held - 8)));
      window %= 2 ** (held - 8);
    }
  }
  if (held > 0) bytes.push((window + 1) * 2 ** (8 - held) - 1);
  return new Uint8Array(bytes);
}

function gather(groups: string[], bits: number): string {
  let group = "";
  const digit = bits.toString(36);
  for (let at = codeLengths.indexOf(digit); at >= 0; at = codeLengths.indexOf(digit, at + 1))
    group += String.fromCharCode(at);
  groups[bits] = group;
  return group;
}
