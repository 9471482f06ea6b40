import { expect, test } from "vitest";
import { answers, echoRequest, smallestPacket } from "./echo-message.ts";

const token = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const reply = (family: 4 | 6): Uint8Array => {
  const bytes = echoRequest(family, 7, token);
  bytes[0] = family === 4 ? 0 : 129;
  return bytes;
};
const withHeader = (bytes: Uint8Array, words: number): Uint8Array =>
  Uint8Array.of(0x40 | words, ...new Array(words * 4 - 1).fill(0), ...bytes);

test("a question has its size with the IP header, and in IPv4 a checksum that sums up", () => {
  for (const family of [4, 6] as const) {
    const header = family === 4 ? 20 : 40;
    expect(echoRequest(family, 7, token).length + header).toBe(smallestPacket(family));
    for (const size of [1_450, 1_451]) expect(echoRequest(family, 7, token, size).length + header).toBe(size);
  }
  for (const size of [36, 37, 1_499]) {
    const bytes = echoRequest(4, 0xfffe, token, size);
    let sum = 0;
    for (let i = 0; i < bytes.length; i += 2) sum += ((bytes[i] ?? 0) << 8) + (bytes[i + 1] ?? 0);
    expect(((sum & 0xffff) + (sum >>> 16)) & 0xffff).toBe(0xffff);
  }
});

test("its answer is told from a question, from another's, and from what is too short or of another kind", () => {
  expect(answers(4, reply(4), false, token)).toBe(true);
  expect(answers(6, reply(6), true, token)).toBe(true);
  expect(answers(4, withHeader(reply(4), 5), true, token)).toBe(true);
  expect(answers(4, withHeader(reply(4), 6), true, token)).toBe(true);
  expect(answers(4, reply(4), true, token)).toBe(false);
  expect(answers(4, echoRequest(4, 7, token), false, token)).toBe(false);
  expect(answers(6, reply(4), false, token)).toBe(false);
  expect(answers(4, reply(4), false, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 9))).toBe(false);
  const whole = withHeader(reply(4), 15);
  for (let length = 0; length < whole.length; length++)
    expect(answers(4, whole.subarray(0, length), true, token)).toBe(false);
});
