import { describe, expect, test } from "vitest";
import { concat, encodeFrame, FrameType, flags, preface } from "../rpc/h2-frames.ts";
import { encodeHeaders, type Header, HpackDecoder } from "../rpc/hpack.ts";
import { createHuffmanTables, huffmanEncode } from "../rpc/huffman.ts";
import { randomNumbers } from "../rpc/scripted-server.ts";
import { AuthorityRewriter } from "./authority-rewriter.ts";

const opening = new TextEncoder().encode(preface);
const settings = encodeFrame(FrameType.settings, 0, 0, new Uint8Array(6));
const data = encodeFrame(FrameType.data, 1, 1, new TextEncoder().encode("/a/b @ :authority"));
const path = "/var/run/antrea/cni.sock";
const clean = "-var-run-antrea-cni.sock";

/** What comes out for these bytes in pieces of that size. */
function rewritten(bytes: Uint8Array, pieceBytes = bytes.length): Uint8Array {
  const rewriter = new AuthorityRewriter();
  const out: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    // A copy: rewriting happens in place, and the caller's bytes are looked at again.
    out.push(...rewriter.push(new Uint8Array(bytes.subarray(at, at + pieceBytes))));
  }
  out.push(...rewriter.end());
  return concat(out);
}

const headersFrame = (block: Uint8Array, more = 0): Uint8Array =>
  encodeFrame(FrameType.headers, flags.endHeaders | more, 1, block);

function huffman(text: string): Uint8Array {
  const bytes = huffmanEncode(createHuffmanTables(), text);
  return concat([new Uint8Array([0x80 | bytes.length]), bytes]);
}

const raw = (text: string): Uint8Array => concat([new Uint8Array([text.length]), new TextEncoder().encode(text)]);
const decoded = (block: Uint8Array): Header[] => new HpackDecoder(4096, 65_536).decode(block);

/** `:method POST`, the authority in this representation, `:path /x/y`, `grpc-timeout /`. */
const blockWith = (authority: Uint8Array): Uint8Array =>
  concat([
    new Uint8Array([0x83]),
    authority,
    encodeHeaders([
      [":path", "/x/y"],
      ["grpc-timeout", "/"],
    ]),
  ]);

describe("a path as :authority", () => {
  test.each([
    ["literal with indexing", concat([new Uint8Array([0x41]), raw(path)])],
    ["literal without indexing", concat([new Uint8Array([0x01]), raw(path)])],
    ["literal never indexed", concat([new Uint8Array([0x11]), raw(path)])],
    ["in Huffman code, as grpc-go sends it", concat([new Uint8Array([0x41]), huffman(path)])],
    ["with its name written out", concat([new Uint8Array([0x40]), raw(":authority"), huffman(path)])],
    ["with its name in Huffman code", concat([new Uint8Array([0x00]), huffman(":authority"), raw(path)])],
    ["behind a size update", concat([new Uint8Array([0x3f, 0x00]), new Uint8Array([0x41]), raw(path)])],
  ])("%s, becomes acceptable, and nothing else changes", (_, authority) => {
    const block = blockWith(authority).subarray(authority[0] === 0x3f ? 1 : 0);
    const bytes = concat([opening, settings, headersFrame(block), data]);
    for (const pieceBytes of [bytes.length, 1, 2, 5, 31]) {
      const out = rewritten(bytes, pieceBytes);
      expect(out).toHaveLength(bytes.length);
      const from = opening.length + settings.length + 9;
      expect(decoded(out.subarray(from, from + block.length))).toEqual(
        decoded(block).map(([name, value]) => [name, name === ":authority" ? clean : value]),
      );
      expect(out.subarray(0, from)).toEqual(bytes.subarray(0, from));
      expect(out.subarray(from + block.length)).toEqual(data);
    }
  });

  test.each([
    ["padding", flags.padded, (block: Uint8Array) => concat([new Uint8Array([4]), block, new Uint8Array(4)]), 1],
    ["a priority", flags.priority, (block: Uint8Array) => concat([new Uint8Array(5), block]), 5],
  ])("is found in a frame with %s", (_, more, wrap, skip) => {
    const block = encodeHeaders([[":authority", path]]);
    const out = rewritten(concat([opening, headersFrame(wrap(block), more)]), 3);
    const from = opening.length + 9 + skip;
    expect(decoded(out.subarray(from, from + block.length))).toEqual([[":authority", clean]]);
  });

  test.each([
    ["@/run/x y", "$-run-x-y", "--run-x-y"],
    ["a?b|c", "a!b+c", "a!b+c"],
    ["localhost:80", "localhost:80", "localhost:80"],
    ["[fd00::1]%25x_,", "[fd00::1]%25x_,", "[fd00::1]%25x_,"],
  ])("%j", (authority, coded, _) => {
    for (const string of [huffman(authority), raw(authority)]) {
      const out = rewritten(concat([opening, headersFrame(concat([new Uint8Array([0x41]), string]))]));
      expect(decoded(out.subarray(opening.length + 9))).toEqual([[":authority", coded]]);
    }
  });
});

describe("whatever else", () => {
  const withAuthority = concat([opening, headersFrame(encodeHeaders([[":authority", path]]))]);
  test.each([
    ["garbage", new TextEncoder().encode(`GET / HTTP/1.1\r\n:authority: ${path}\r\n\r\n`)],
    ["nothing but a preface", opening],
    [
      "a preface with an error at its end",
      concat([opening.subarray(0, 23), new TextEncoder().encode("x"), withAuthority.subarray(24)]),
    ],
    ["a path in DATA", concat([opening, data, data])],
    [
      "a path in another header",
      concat([
        opening,
        headersFrame(
          encodeHeaders([
            [":path", path],
            ["x", path],
          ]),
        ),
      ]),
    ],
    [
      "a frame that is too long",
      concat([opening, encodeFrame(1, 4, 1, concat([encodeHeaders([[":authority", path]]), new Uint8Array(16_384)]))]),
    ],
    ["a frame cut off", withAuthority.subarray(0, withAuthority.length - 1)],
    ["a string beyond its block", concat([opening, headersFrame(new Uint8Array([0x41, 0x7f, 0x00, 47, 47]))])],
    ["an integer without an end", concat([opening, headersFrame(new Uint8Array([0x41, 0xff, 0xff]))])],
    ["a Huffman string with wrong padding", concat([opening, headersFrame(new Uint8Array([0x41, 0x81, 0x60]))])],
    ["an empty header block", concat([opening, headersFrame(new Uint8Array(0)), data])],
    ["padding beyond the frame", concat([opening, headersFrame(new Uint8Array([9, 0x41, 1, 47]), flags.padded)])],
  ])("passes unchanged: %s", (_, bytes) => {
    for (const pieceBytes of [bytes.length, 1, 10]) expect(rewritten(bytes, pieceBytes)).toEqual(bytes);
  });

  test("comes out as long as it went in, whatever it is", () => {
    const random = randomNumbers(145);
    for (let i = 0; i < 600; i++) {
      const frames = Array.from({ length: 4 }, () =>
        encodeFrame(
          random(3),
          random(256),
          1,
          Uint8Array.from({ length: random(60) }, () => random(256)),
        ),
      );
      const bytes = concat([opening, ...frames, Uint8Array.from({ length: random(12) }, () => random(256))]);
      const whole = rewritten(bytes);
      expect(whole).toHaveLength(bytes.length);
      expect(rewritten(bytes, 1 + random(20))).toEqual(whole);
    }
  });
});
