import type { Chance, Mutator } from "../engine/target.ts";

const one = <T>(from: readonly T[], chance: Chance): T => from[chance(from.length)] as T;

/** Ends of ranges, signs, lengths that do not fit. */
const numbers = [0, 1, 2, 7, 8, 15, 16, 31, 64, 127, 128, 255, 256, 1023, 4096, 16_384, 32_767, 32_768, 65_535, 65_536];
const wide = [0x7f_ff_ff_ff, 0x80_00_00_00, 0xff_ff_ff_ff, 0xff_ff_ff_fe, 0x00_ff_ff_ff];

/** `bytes` with what lies from `from` to `to` replaced. */
export function replaced(bytes: Uint8Array, from: number, to: number, by: Uint8Array): Uint8Array {
  const out = new Uint8Array(bytes.length - (to - from) + by.length);
  out.set(bytes.subarray(0, from));
  out.set(by, from);
  out.set(bytes.subarray(to), from + by.length);
  return out;
}

const flip: Mutator = (input, _other, chance) => {
  const out = input.slice();
  if (out.length > 0) out[chance(out.length)]! ^= 1 << chance(8);
  return out;
};

const overwrite: Mutator = (input, _other, chance) => {
  const out = input.slice();
  for (let times = 1 + chance(4); times > 0 && out.length > 0; times--) out[chance(out.length)] = chance(256);
  return out;
};

const writeNumber: Mutator = (input, _other, chance) => {
  const out = input.slice();
  const width = one([1, 2, 4], chance);
  if (out.length < width) return out;
  const value = chance(3) === 0 ? one(wide, chance) : one(numbers, chance) + chance(3) - 1;
  const at = chance(out.length - width + 1);
  const little = chance(2) === 0;
  for (let i = 0; i < width; i++) out[at + i] = value >>> (8 * (little ? i : width - 1 - i));
  return out;
};

const drop: Mutator = (input, _other, chance) => {
  if (input.length === 0) return input;
  const from = chance(input.length);
  return replaced(input, from, Math.min(input.length, from + 1 + chance(chance(4) === 0 ? input.length : 8)), nothing);
};

const cut: Mutator = (input, _other, chance) => input.subarray(0, chance(input.length + 1));

const repeat: Mutator = (input, _other, chance) => {
  const from = chance(input.length + 1);
  const part = input.subarray(from, from + 1 + chance(32));
  const times = chance(8) === 0 ? 1 + chance(200) : 1;
  const all = new Uint8Array(part.length * times);
  for (let i = 0; i < times; i++) all.set(part, i * part.length);
  return replaced(input, from, from, all);
};

const insert: Mutator = (input, _other, chance) => {
  const at = chance(input.length + 1);
  return replaced(
    input,
    at,
    at,
    Uint8Array.from({ length: 1 + chance(8) }, () => chance(256)),
  );
};

const splice: Mutator = (input, other, chance) => {
  const from = chance(other.length + 1);
  const part = other.subarray(from, from + 1 + chance(other.length + 1));
  const at = chance(input.length + 1);
  const to = chance(2) === 0 ? at : Math.min(input.length, at + part.length);
  return replaced(input, at, to, part);
};

/** For text that a parser counts in: another number where digits stand. */
const renumber: Mutator = (input, _other, chance) => {
  const text = latin(input);
  const places = [...text.matchAll(/\d+/g)];
  if (places.length === 0) return input;
  const place = one(places, chance);
  const value = one(["0", "-1", "1e999", "4294967296", "9007199254740993", "99999999999999999999", "0x10", ""], chance);
  const by = chance(2) === 0 ? value : String(one(numbers, chance) + chance(3) - 1);
  return replaced(input, place.index, place.index + place[0].length, new TextEncoder().encode(by));
};

/** Changes that need no idea of what the bytes mean. */
export const byteMutators: readonly Mutator[] = [
  ...[flip, overwrite, writeNumber, drop, cut, repeat, insert, splice, splice, renumber],
];

/** Words of the boundary, put in or written over. */
export function dictionaryMutator(words: readonly string[]): Mutator {
  return (input, _other, chance) => {
    const word = new TextEncoder().encode(one(words, chance));
    const at = chance(input.length + 1);
    return replaced(input, at, chance(2) === 0 ? at : Math.min(input.length, at + word.length), word);
  };
}

const nothing = new Uint8Array(0);

/** One character a byte, so that places in the text are places in the bytes. */
const latin = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
