import { describe, expect, test } from "vitest";
import { decode, decodeEnvelope, type FieldTable, Input, objectMeta } from "./protobuf.ts";
import { WatchFrames } from "./watch-frames.ts";

const table: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: [
    "spec",
    "message",
    { 1: ["port", "intOrString"], 2: ["list", "strings"], 3: ["on", "boolean"], 4: ["n", "integer"] },
  ],
};

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
const field = (number: number, bytes: readonly number[]): number[] => [
  ...varint(number * 8 + 2),
  ...varint(bytes.length),
  ...bytes,
];
const text = (value: string): number[] => [...new TextEncoder().encode(value)];
const meta = (name: string): number[] => [
  ...field(1, text(name)),
  ...field(2, text("unwanted")),
  ...field(6, text("7")),
  ...field(8, [8, ...varint(1_763_800_000)]),
  ...field(11, [...field(1, text("app")), ...field(2, text("wéb"))]),
  ...field(11, [...field(1, text("empty")), ...field(2, [])]),
  ...field(17, field(1, text("managed"))),
];
const object = (name: string): number[] => [
  ...field(1, meta(name)),
  ...field(2, [
    ...field(1, [8, 1, ...field(3, text("http"))]),
    ...field(2, text("a")),
    ...field(2, text("b")),
    24,
    1,
    32,
    300 - 172,
    1,
  ]),
  ...[8 * 9 + 1, 1, 2, 3, 4, 5, 6, 7, 8, 8 * 10 + 5, 1, 2, 3, 4],
];
const envelope = (kind: string, raw: readonly number[]): number[] => [
  ...[0x6b, 0x38, 0x73, 0],
  ...field(1, [...field(1, text("v1")), ...field(2, text(kind))]),
  ...field(2, raw),
  ...field(3, []),
];
const frame = (type: string, inner: readonly number[]): number[] => {
  const event = [...field(1, text(type)), ...field(2, field(1, inner))];
  return [...new Uint8Array(new Uint32Array([event.length]).buffer).reverse(), ...event];
};
const wanted = {
  kind: "Pod",
  metadata: {
    name: "x",
    resourceVersion: "7",
    creationTimestamp: "2025-11-22T08:26:40Z",
    labels: { app: "wéb", empty: "" },
  },
  spec: { port: "http", list: ["a", "b"], on: true, n: 128 },
};

function read(frames: WatchFrames, bytes: Uint8Array, size: number): unknown[] {
  const events: unknown[] = [];
  for (let at = 0; at < bytes.length; at += size) events.push(...frames.push(bytes.subarray(at, at + size)));
  return events;
}

describe("events of a watch, cut anywhere", () => {
  const json = text(`{"type":"ADDED","object":{"metadata":{"name":"wéb"}}}\n\n{"type":"BOOKMARK","object":{}}\n`);
  const proto = [
    ...frame("ADDED", envelope("Pod", object("x"))),
    ...frame("ERROR", envelope("Status", field(3, text("no")))),
  ];

  test.each([1, 2, 3, 7, 64, 4096])("in pieces of %i bytes", (size) => {
    expect(read(new WatchFrames(undefined), Uint8Array.from(json), size)).toEqual([
      { type: "ADDED", object: { metadata: { name: "wéb" } } },
      { type: "BOOKMARK", object: {} },
    ]);
    expect(read(new WatchFrames(table), Uint8Array.from(proto), size)).toEqual([
      { type: "ADDED", object: wanted },
      { type: "ERROR", object: { kind: "Status", message: "no" } },
    ]);
  });

  test.each<[string, number[], string]>([
    ["no envelope", frame("ADDED", object("x")), "no protobuf of Kubernetes"],
    ["an empty envelope", frame("ADDED", [0x6b, 0x38, 0x73, 0]), "envelope is empty"],
    ["a field that is too long", frame("ADDED", envelope("Pod", [10, 100, 1])), "longer than its message"],
    ["a number without end", frame("ADDED", envelope("Pod", [10, ...Array(11).fill(255)])), "has no end"],
    ["a group", frame("ADDED", envelope("Pod", [11])), "wire type 3"],
    ["a length beyond all", [0xff, 0, 0, 0], "more than"],
  ])("%s is no event", (_, bytes, is) => {
    expect(() => read(new WatchFrames(table), Uint8Array.from(bytes), 5)).toThrow(is);
  });

  test("of whatever is cut off nothing is taken for whole", () => {
    const whole = envelope("Pod", object("x"));
    for (let length = 0; length < whole.length - 2; length++)
      expect(() => decodeEnvelope(Uint8Array.from(whole.slice(0, length)), table)).toThrow();
  });

  test.each([
    ["a port by number", [8, 0, 16, ...varint(8080)], { port: 8080 }],
    ["a port by number, whose type is left out", [16, ...varint(80)], { port: 80 }],
    ["a port by name", [8, 1, 16, 7, ...field(3, text("http"))], { port: "http" }],
  ])("%s", (_, value, wanted) => {
    const bytes = Uint8Array.from(field(1, value));
    expect(decode(new Input(bytes, 0, bytes.length), { 1: ["port", "intOrString"] })).toEqual(wanted);
  });

  test.each([
    ["9999-12-31T23:59:59Z", 253_402_300_799],
    [undefined, 253_402_300_800],
  ])("the last time that can be told is %s", (wanted, seconds) => {
    const bytes = Uint8Array.from(field(8, [8, ...varint(seconds)]));
    expect(decode(new Input(bytes, 0, bytes.length), objectMeta)).toEqual({ creationTimestamp: wanted });
  });

  test("a zero time and an empty string are as absent as in JSON", () => {
    const zero = [...field(1, []), ...field(8, [8, 0x80, 0x92, 0xb8, 0xc3, 0x98, 0xfe, 0xff, 0xff, 0xff, 1])];
    expect(decode(new Input(Uint8Array.from(zero), 0, zero.length), objectMeta)).toEqual({
      creationTimestamp: undefined,
    });
  });
});
