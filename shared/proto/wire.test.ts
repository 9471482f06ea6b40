import { describe, expect, test } from "vitest";
import {
  bytes,
  flag,
  int32,
  int64,
  type MessageCodec,
  message,
  nested,
  repeated,
  text,
  texts,
  WireError,
} from "./wire.ts";

interface Inner {
  readonly name: string;
  readonly size: number;
}

interface Outer {
  readonly label: string;
  readonly small: number;
  readonly large: number;
  readonly on: boolean;
  readonly inner?: Inner | undefined;
  readonly list: readonly Inner[];
  readonly words: readonly string[];
  readonly raw: Uint8Array;
}

const inner: MessageCodec<Inner> = message({ name: text(1), size: int32(2) });
const outer: MessageCodec<Outer> = message({
  label: text(1),
  small: int32(2),
  large: int64(3),
  on: flag(4),
  inner: nested(5, inner),
  list: repeated(6, inner),
  words: texts(7),
  raw: bytes(200),
});

const full: Outer = {
  label: "pod-ä",
  small: -7,
  large: -(2 ** 53) + 1,
  on: true,
  inner: { name: "x", size: 2 ** 31 - 1 },
  list: [
    { name: "a", size: -(2 ** 31) },
    { name: "", size: 0 },
  ],
  words: ["one", "", "three"],
  raw: new Uint8Array([0, 1, 2, 255]),
};

const of = (...values: number[]): Uint8Array => new Uint8Array(values);

describe("a message", () => {
  test("reads back what was written, with negative numbers and empty elements", () => {
    expect(outer.decode(outer.encode(full))).toEqual(full);
  });

  test.each([0, 1, -1, 127, 128, 2 ** 31, -(2 ** 31) - 1, 2 ** 32, 2 ** 53 - 1, -(2 ** 53) + 1])(
    "keeps %d in 64 bits",
    (large) => {
      expect(outer.decode(outer.encode({ ...full, large })).large).toBe(large);
    },
  );

  test("grows with what it holds", () => {
    const raw = new Uint8Array(3_000_000).map((_, i) => i % 251);
    expect(Buffer.compare(outer.decode(outer.encode({ ...full, raw })).raw, raw)).toBe(0);
  });

  test("keeps a byte order mark", () => {
    expect(outer.decode(outer.encode({ ...full, label: "\ufeffa" })).label).toBe("\ufeffa");
  });

  test("cut anywhere, is an error or a shorter message, never a fault", () => {
    const whole = outer.encode(full);
    const outcomes = Array.from(whole, (_, length) => {
      try {
        outer.decode(whole.subarray(0, length));
        return "message";
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
        return "error";
      }
    });
    // A cut between two of its eleven fields leaves a message.
    expect(outcomes.filter((outcome) => outcome === "message")).toHaveLength(11);
  });
});

describe("what is not in the table", () => {
  test.each([
    ["a varint", of(0x78, 0x96, 0x01)],
    ["64 bits", of(0x79, 1, 2, 3, 4, 5, 6, 7, 8)],
    ["32 bits", of(0x7d, 1, 2, 3, 4)],
    ["bytes", of(0x7a, 2, 1, 2)],
    ["a group", of(0x7b, 0x08, 0x01, 0x7b, 0x7c, 0x7c)],
    ["a known number of another wire type", of(0x08, 0x05)],
  ])("is skipped: %s", (_, unknown) => {
    const known = inner.encode({ name: "kept", size: 5 });
    const mixed = new Uint8Array([...unknown, ...known, ...unknown]);
    expect(inner.decode(mixed)).toEqual({ name: "kept", size: 5 });
  });
});

describe("a field that comes again", () => {
  test("replaces a scalar", () => {
    expect(inner.decode(of(0x10, 1, 0x10, 2)).size).toBe(2);
  });

  test("is merged into an embedded message", () => {
    const pieces = of(0x2a, 3, 0x0a, 1, 0x78, 0x2a, 2, 0x10, 9);
    expect(outer.decode(pieces).inner).toEqual({ name: "x", size: 9 });
  });

  test("does not leak into the next message", () => {
    outer.decode(outer.encode(full));
    expect(outer.decode(of()).list).toEqual([]);
  });
});

test.each([
  ["a field number of 0", of(0x02, 0x00), "its number is out of range"],
  ["a tag beyond 32 bits", of(0xff, 0xff, 0xff, 0xff, 0x7f), "its number is out of range"],
  ["a length beyond the end", of(0x0a, 5, 0x61), "it has 5 bytes, wanted at most the 1 left"],
  ["a length beyond 32 bits", of(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), "beyond 2^32"],
  ["an endless varint", of(0x10, ...new Array<number>(11).fill(0x80)), "longer than 10 bytes"],
  ["a varint cut off", of(0x10, 0x80), "the message ends inside it"],
  ["a string that is not UTF-8", of(0x0a, 1, 0xff), "it is not UTF-8"],
  ["wire type 6", of(0x0e), "its wire type is 6"],
  ["a group that ends without a beginning", of(0x0c), "its wire type is 4"],
  ["a group that ends as another", of(0x7b, 0x74), "its group ends as 14"],
  ["a group without an end", of(0x7b), "the message ends inside it"],
  ["groups within groups", new Uint8Array(100).fill(0x7b), "its wire type is 3"],
])("refuses %s", (_, malformed, reason) => {
  expect(() => inner.decode(malformed)).toThrow(WireError);
  expect(() => inner.decode(malformed)).toThrow(reason);
});

test("refuses a number that a JavaScript number cannot hold, both ways", () => {
  expect(() => outer.decode(of(0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))).toThrow("beyond 2^53");
  expect(() => outer.encode({ ...full, large: 2 ** 53 })).toThrow("wanted a whole number within 2^53");
  expect(() => outer.encode({ ...full, small: 0.5 })).toThrow("its value is 0.5");
});
