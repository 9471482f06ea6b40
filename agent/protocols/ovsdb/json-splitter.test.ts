import { describe, expect, test } from "vitest";
import { random } from "../../../test/support/random.ts";
import { type JsonPiece, JsonSplitter } from "./json-splitter.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function piecesOf(splitter: JsonSplitter, bytes: Uint8Array, pieceBytes: (left: number) => number): JsonPiece[] {
  const pieces: JsonPiece[] = [];
  for (let at = 0; at < bytes.length; ) {
    const chunk = bytes.slice(at, at + pieceBytes(bytes.length - at));
    at += chunk.length;
    splitter.push(chunk);
    for (let piece = splitter.next(); piece !== undefined; piece = splitter.next()) {
      pieces.push(piece);
      if (piece.t === "fault") return pieces;
    }
    // What is held must be a copy.
    chunk.fill(0xee);
  }
  return pieces;
}

const textsOf = (pieces: readonly JsonPiece[]): string[] =>
  pieces.map((piece) => (piece.t === "text" ? piece.text : `fault: ${piece.is}`));

const objects = [
  "{}",
  '{"a":[1,2,{"b":null}]}',
  '{"braces":"}{][","quote":"\\"}","backslash":"\\\\"}',
  '{"é":"日本語 \u{1f600}","escaped":"\\u007b\\ud83d\\ude00"}',
  `{"long":"${"x".repeat(9000)}"}`,
];

describe("objects back to back", () => {
  test.each([1, 2, 3, 7, 4096, 1_000_000])("come whole in pieces of %d bytes", (size) => {
    const stream = `${objects.join("")} \r\n\t${objects.join("\n")}`;
    expect(textsOf(piecesOf(new JsonSplitter(), bytesOf(stream), () => size))).toEqual([...objects, ...objects]);
  });

  test("of which one that has not come whole is all that is held", () => {
    const splitter = new JsonSplitter();
    expect(textsOf(piecesOf(splitter, bytesOf('{"a":1}{"b":"'), () => 1))).toEqual(['{"a":1}']);
    expect(splitter.heldBytes).toBe(6);
    expect(textsOf(piecesOf(splitter, bytesOf('}"}'), () => 1))).toEqual(['{"b":"}"}']);
    expect(splitter.heldBytes).toBe(0);
  });
});

describe("what is refused", () => {
  const bad: readonly [what: string, bytes: Uint8Array, is: string][] = [
    ["something else than an object", bytesOf("[1]"), "a message begins with the byte 0x5b"],
    ["a text alone", bytesOf('"x"'), "a message begins with the byte 0x22"],
    ["another protocol", Uint8Array.of(6, 0, 0, 16), "a message begins with the byte 0x06"],
    ["a closing brace", bytesOf("}"), "a message begins with the byte 0x7d"],
    ["a byte order mark", Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d), "a message begins with the byte 0xef"],
    ["half a character", Uint8Array.of(0x7b, 0x22, 0xc3, 0x22, 0x7d), "a message is not UTF-8"],
    ["too deep nesting", bytesOf(`{"a":${"[".repeat(64)}`), "a message is nested more than 64 deep"],
    ["too long a message", bytesOf(`{"a":"${"x".repeat(95)}"}`), "a message is longer than 100 bytes"],
    ["too long a beginning", bytesOf(`{"a":"${"x".repeat(95)}`), "a message is longer than 100 bytes"],
  ];
  test.each(bad)("%s, however it is cut, for good", (_, bytes, is) => {
    for (const size of [1, 5, 1000]) {
      const splitter = new JsonSplitter(100);
      expect(textsOf(piecesOf(splitter, bytes, () => size))).toEqual([`fault: ${is}`]);
      expect(splitter.heldBytes).toBe(0);
      splitter.push(bytesOf("{}"));
      expect(splitter.next()).toEqual({ t: "fault", is });
    }
  });

  test("a message of just the longest length is not", () => {
    const text = `{"a":"${"x".repeat(92)}"}`;
    expect(text).toHaveLength(100);
    expect(textsOf(piecesOf(new JsonSplitter(100), bytesOf(text + text), () => 33))).toEqual([text, text]);
  });
});

const rounds = Number(process.env["PIPETTE_FUZZ_ROUNDS"] ?? 300);

describe("with random input", () => {
  test("any objects, cut anywhere, come as they were", () => {
    for (let seed = 1; seed <= rounds; seed++) {
      const next = random(seed);
      const value = (depth: number): unknown => {
        const kind = next(depth > 4 ? 3 : 5);
        if (kind === 0) return next(1000);
        if (kind === 1) return String.fromCharCode(...Array.from({ length: next(9) }, () => next(0x300)));
        if (kind === 2) return '"{[\\]}';
        if (kind === 3) return Array.from({ length: next(4) }, () => value(depth + 1));
        return Object.fromEntries(Array.from({ length: next(4) }, (_, i) => [`${i}\\"}`, value(depth + 1)]));
      };
      const sent = Array.from({ length: 1 + next(5) }, () => JSON.stringify({ value: value(0) }));
      const got = piecesOf(new JsonSplitter(), bytesOf(sent.join(" ".repeat(next(3)))), (left) => 1 + next(left));
      expect(textsOf(got)).toEqual(sent);
    }
  });

  test("noise ends in a fault or is held within the bound", () => {
    const alphabet = bytesOf('{}[]"\\ \n,:0aé');
    for (let seed = 1; seed <= rounds; seed++) {
      const next = random(seed);
      const splitter = new JsonSplitter(64);
      const noise = Uint8Array.from({ length: 500 }, () => alphabet[next(alphabet.length)] ?? 0);
      noise[0] = 0x7b;
      piecesOf(splitter, noise, () => 1 + next(9));
      expect(splitter.heldBytes).toBeLessThanOrEqual(64);
    }
  });
});
