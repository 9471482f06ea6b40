import { expect, test } from "vitest";
import { MessageType } from "./constants.ts";
import { NetlinkBuffers } from "./netlink-buffers.ts";

const sequence = 7;
/** struct nlmsghdr, the errno, and the header of the request once more, as the kernel sends it. */
const bytes = 36;

/** What comes in, in words. */
function arrived(changes: Readonly<Record<number, number>> = {}): NetlinkBuffers {
  const buffers = new NetlinkBuffers();
  const words = new Uint32Array(buffers.in.bytes.buffer);
  words.set([bytes, MessageType.ERROR | (0x100 << 16), sequence, 4711, 0]);
  for (const [at, word] of Object.entries(changes)) words[Number(at)] = word;
  return buffers;
}

test("an acknowledgement is known, whatever its flags and its port are", () => {
  expect(arrived().errnoFor(sequence, bytes)).toBe(0);
  expect(arrived({ 1: MessageType.ERROR, 3: 0 }).errnoFor(sequence, bytes)).toBe(0);
});

test("a refusal is known by its number", () => {
  expect(arrived({ 4: -17 }).errnoFor(sequence, bytes)).toBe(17);
});

test.each([
  ["an answer to an earlier request", { 2: sequence - 1 }],
  ["another message", { 1: MessageType.NEWLINK }],
  ["the end of a list", { 1: MessageType.DONE }],
  ["a datagram with something behind the answer", { 0: bytes - 16 }],
])("%s is none", (_, changes) => {
  expect(arrived(changes).errnoFor(sequence, bytes)).toBeUndefined();
});

test("one that ends before its errno is none, whatever lay there", () => {
  expect(arrived({ 0: 16 }).errnoFor(sequence, 16)).toBeUndefined();
});
