import { expect, test } from "vitest";
import { seal, sealedVariables } from "./seal.ts";

/** As the compiler of Bun's executable for arm64 makes the comparison of a name's first letters, four bytes each. */
function comparisons(letters: string): Buffer {
  const words = [...Buffer.from(letters)].flatMap((letter, index) => [
    0x39400000 | (index << 10) | (9 << 5) | 10, // ldrb w10, [x9, index]
    0x7100001f | (letter << 10) | (10 << 5), // cmp w10, letter
    0x54ffff01, // b.ne back
  ]);
  const bytes = Buffer.alloc(4 * words.length);
  for (const [index, word] of words.entries()) bytes.writeUInt32LE(word >>> 0, 4 * index);
  return bytes;
}

const names = sealedVariables.filter((name) => name !== "SIMDUTF_FORCE_IMPLEMENTATION");
/** A multiple of four bytes. */
const texts = Buffer.from(`${names.join("\0")}\0`.padEnd(400, "\0"));

test("on arm64 the first comparison of every engine option fails always, and no name is left", () => {
  const before = comparisons("BUN_JSC_");
  const program = Buffer.concat([texts, comparisons("BUN_JSX_"), before, texts.subarray(0, 0)]);
  seal(program, "arm64");
  const at = texts.length + before.length;
  // b.al, with the same distance.
  expect(program.readUInt32LE(at + 8)).toBe(0x54ffff0e);
  program.writeUInt32LE(0x54ffff01, at + 8);
  expect(program.subarray(at)).toEqual(before);
  for (const name of names) expect(program.includes(name)).toBe(false);
});

test("a program in which it is not there once, or lacks a name of its processor's, is not called sealed", () => {
  expect(() => seal(Buffer.from(texts), "arm64")).toThrow(/"BUN_JSC_\*".* it is there 0 times/);
  const twice = Buffer.concat([texts, comparisons("BUN_JSC_"), comparisons("BUN_JSC_")]);
  expect(() => seal(twice, "arm64")).toThrow(/"BUN_JSC_\*".* it is there 2 times/);
  expect(() => seal(Buffer.from(texts), "x64")).toThrow(/"SIMDUTF_FORCE_IMPLEMENTATION".* it is there 0 times/);
});
