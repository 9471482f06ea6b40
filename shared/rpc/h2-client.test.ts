import { describe, expect, test } from "vitest";
import {
  answer,
  answerHeaders,
  data,
  empty,
  goaway,
  headers,
  hex,
  okTrailers,
  reset,
  settings,
  settingsAck,
  trailers,
  uint32,
} from "../../test/fakes/http2/scripted-server.ts";
import { limits } from "../limits.ts";
import { H2Call, type Outcome } from "./h2-client.ts";
import { concat, encodeFrame, encodeSettings, encodeWindowUpdate, FrameType, flags } from "./h2-frames.ts";
import { encodeHeaders, type Header } from "./hpack.ts";
import { prefixed } from "./message-frame.ts";
import type { GrpcCode } from "./rpc-error.ts";

const requestHeaders: readonly Header[] = [
  [":method", "POST"],
  [":path", "/a.b/C"],
];
const newCall = (request: Uint8Array = empty): H2Call => new H2Call(requestHeaders, request, "Cannot call");

/** What comes of a server's bytes in pieces of that size, the connection closed behind them. */
function outcomeOf(bytes: Uint8Array, pieceBytes: number): Outcome {
  const call = newCall();
  // One array for all of the pieces: what the call keeps of it must be a copy.
  const piece = new Uint8Array(Math.min(pieceBytes, bytes.length));
  for (let at = 0; at < bytes.length; at += piece.length) {
    const part = bytes.subarray(at, at + piece.length);
    piece.set(part);
    call.receive(piece.subarray(0, part.length));
    call.take();
  }
  call.ended();
  return call.outcome;
}

const message = new TextEncoder().encode("the answer, of some length");
const frame = (type: number, frameFlags: number, stream: number, payload: Uint8Array): Uint8Array =>
  encodeFrame(type, frameFlags, stream, payload);
const padded = (payload: Uint8Array, bytes: number): Uint8Array =>
  concat([new Uint8Array([bytes]), payload, new Uint8Array(bytes)]);
const ping = frame(FrameType.ping, 0, 0, new Uint8Array(8).fill(7));
const block = encodeHeaders(answerHeaders);
/** The same trailers as servers send them: new names, Huffman code, indexing. */
const indexedTrailers = hex("40889acac8b21234da8f8107");
const good = [settings, settingsAck, headers(answerHeaders), data(prefixed(message)), trailers(okTrailers)] as const;

describe("a good answer", () => {
  test.each([
    ["in five frames", concat(good)],
    ["with a Huffman-coded status", concat([...good.slice(0, 4), frame(1, 5, 1, indexedTrailers)])],
    [
      "after PING, WINDOW_UPDATE and PRIORITY",
      concat([good[0], ping, encodeWindowUpdate(0, 1000), frame(2, 0, 1, new Uint8Array(5)), ...good.slice(1)]),
    ],
    [
      "with a message in four frames, one of them empty",
      concat([
        ...good.slice(0, 3),
        data(prefixed(message).subarray(0, 3)),
        data(empty),
        data(prefixed(message).subarray(3, 9)),
        data(prefixed(message).subarray(9)),
        good[4],
      ]),
    ],
    [
      "with padding",
      concat([
        settings,
        frame(1, flags.endHeaders | flags.padded, 1, padded(block, 20)),
        data(padded(prefixed(message), 255), flags.padded),
        good[4],
      ]),
    ],
    [
      "with a priority in its headers",
      concat([
        settings,
        frame(1, flags.endHeaders | flags.priority, 1, concat([new Uint8Array(5), block])),
        good[3],
        good[4],
      ]),
    ],
    [
      "with headers in CONTINUATION frames",
      concat([
        settings,
        frame(1, 0, 1, block.subarray(0, 3)),
        frame(9, 0, 1, block.subarray(3, 4)),
        frame(9, flags.endHeaders, 1, block.subarray(4)),
        good[3],
        good[4],
      ]),
    ],
    [
      "after 100 and 103",
      concat([
        settings,
        headers([[":status", "100"]]),
        headers([
          [":status", "103"],
          ["link", "x"],
        ]),
        good[2],
        good[3],
        good[4],
      ]),
    ],
    [
      "with a type of a subtype",
      concat([
        settings,
        headers([
          [":status", "200"],
          ["content-type", "application/grpc+proto"],
        ]),
        good[3],
        good[4],
      ]),
    ],
    ["between frames of unknown types", concat([settings, frame(77, 255, 9, new Uint8Array(30)), ...good.slice(2)])],
    ["from a server that closes down", concat([settings, good[2], goaway(1, 0), good[3], good[4]])],
    ["followed by a reset", concat([...good, reset(0)])],
  ])("%s", (_, bytes) => {
    for (const pieceBytes of [bytes.length, 1, 2, 7, 64]) {
      expect(outcomeOf(bytes, pieceBytes)).toEqual({ t: "answered", message });
    }
  });

  test("may be empty", () => {
    expect(outcomeOf(answer(empty), 1)).toEqual({ t: "answered", message: empty });
  });
});

describe("any other answer", () => {
  const failing: readonly (readonly [name: string, bytes: Uint8Array, code: GrpcCode, reason: string])[] = [
    ["nothing", empty, 14, "the server closed the connection before it answered"],
    ["HTTP/1.1", new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n"), 13, 'begins with "HTTP/1.1 '],
    [
      "bytes that no terminal should see",
      concat([Uint8Array.of(31, 32, 126, 127, 128), new TextEncoder().encode("more")]),
      13,
      'begins with ". ~..more", wanted HTTP/2',
    ],
    ["an acknowledgement first", settingsAck, 13, "wanted HTTP/2"],
    [
      "a status with a message",
      concat([
        settings,
        trailers([
          [":status", "200"],
          ["grpc-status", "9"],
          ["grpc-message", "gateway%20%E7%B6%B2"],
        ]),
      ]),
      9,
      "gateway 網",
    ],
    ["a status in the trailers", concat([...good.slice(0, 4), trailers([["grpc-status", "8"]])]), 8, 'with status "8"'],
    [
      "an unassigned status",
      concat([
        settings,
        trailers([
          [":status", "200"],
          ["grpc-status", "17"],
        ]),
      ]),
      2,
      'with status "17"',
    ],
    ["trailers without a status", concat([...good.slice(0, 4), trailers([["x", "y"]])]), 2, "no status"],
    ["HTTP 404", concat([settings, headers([[":status", "404"]]), data(message)]), 12, "HTTP status 404"],
    [
      "a web page",
      concat([
        settings,
        headers([
          [":status", "200"],
          ["content-type", "text/html"],
        ]),
      ]),
      2,
      'content type "text/html"',
    ],
    ["1xx that ends the stream", concat([settings, trailers([[":status", "100"]])]), 2, "HTTP status 100"],
    ["success without a message", concat([settings, good[2], good[4]]), 13, "no whole message"],
    [
      "half a message",
      concat([settings, good[2], data(prefixed(message).subarray(0, 12)), good[4]]),
      13,
      "no whole message",
    ],
    ["two messages", concat([settings, good[2], good[3], good[3], good[4]]), 13, "goes on behind its message"],
    ["a compressed message", concat([settings, good[2], data(hex("0100000001aa"))]), 13, "compressed"],
    [
      "a message that claims 4 GB",
      concat([settings, good[2], data(hex("00ffffffff"))]),
      8,
      "4294967295 bytes long, wanted at most 4194304",
    ],
    ["no trailers", concat([settings, good[2], data(prefixed(message), flags.endStream)]), 13, "no trailers"],
    [
      "trailers that go on",
      concat([settings, good[2], good[3], headers(okTrailers)]),
      13,
      "trailers that do not end the stream",
    ],
    ["DATA before HEADERS", concat([settings, data(message)]), 13, "DATA before HEADERS"],
    ["DATA of another stream", concat([settings, good[2], frame(0, 0, 3, message)]), 13, "DATA on stream 3"],
    ["HEADERS of another stream", concat([settings, frame(1, 4, 3, block)]), 13, "HEADERS on stream 3"],
    ["a push", concat([settings, frame(5, 4, 1, concat([uint32(2), block]))]), 13, "a push"],
    ["a frame that is too long", concat([settings, hex("004001000000000001")]), 13, "a frame of 16385 bytes"],
    [
      "more padding than payload",
      concat([settings, good[2], data(hex("0500"), flags.padded)]),
      13,
      "more padding than payload",
    ],
    [
      "padding without its length",
      concat([settings, good[2], data(empty, flags.padded)]),
      13,
      "more padding than payload",
    ],
    [
      "HEADERS shorter than their priority",
      concat([settings, frame(1, 0x24, 1, hex("0000"))]),
      13,
      "more padding than payload",
    ],
    ["CONTINUATION without HEADERS", concat([settings, frame(9, 4, 1, block)]), 13, "CONTINUATION without HEADERS"],
    ["an interrupted header block", concat([settings, frame(1, 0, 1, block), ping]), 13, "interrupted"],
    [
      "a header block that goes on elsewhere",
      concat([settings, frame(1, 0, 1, block), frame(9, 4, 3, block)]),
      13,
      "interrupted",
    ],
    [
      "an empty CONTINUATION",
      concat([settings, frame(1, 0, 1, block), frame(9, 0, 1, empty)]),
      13,
      "an empty CONTINUATION",
    ],
    [
      "an endless header block",
      concat([
        settings,
        frame(1, 0, 1, block),
        ...new Array<Uint8Array>(5).fill(frame(9, 0, 1, new Uint8Array(16_384))),
      ]),
      8,
      "headers are longer than 65536",
    ],
    [
      "headers that cannot be read",
      concat([settings, frame(1, 4, 1, hex("be"))]),
      13,
      "headers cannot be read: entry 62",
    ],
    ["a refused stream", concat([settings, reset(7)]), 14, "REFUSED_STREAM"],
    ["a cancelled stream", concat([settings, reset(8)]), 1, "CANCEL"],
    ["a malformed RST_STREAM", concat([settings, frame(3, 0, 1, hex("00"))]), 13, "a malformed RST_STREAM"],
    ["a reset of another stream", concat([settings, frame(3, 0, 3, uint32(8))]), 13, "a malformed RST_STREAM"],
    [
      "GOAWAY that leaves the call out",
      concat([settings, goaway(0, 11, "too busy")]),
      14,
      'GOAWAY ENHANCE_YOUR_CALM "too busy"',
    ],
    [
      "GOAWAY and then nothing",
      concat([settings, goaway(1, 2)]),
      14,
      "closed the connection before it answered after GOAWAY INTERNAL_ERROR",
    ],
    ["a malformed GOAWAY", concat([settings, frame(7, 0, 0, hex("00"))]), 13, "a malformed GOAWAY"],
    ["SETTINGS of a stream", concat([settings, frame(4, 0, 1, empty)]), 13, "malformed SETTINGS"],
    ["SETTINGS of 5 bytes", frame(4, 0, 0, new Uint8Array(5)), 13, "malformed SETTINGS"],
    [
      "an acknowledgement with a payload",
      concat([settings, frame(4, 1, 0, new Uint8Array(6))]),
      13,
      "malformed SETTINGS",
    ],
    ["an initial window beyond 2^31", encodeSettings([[4, 2 ** 31]]), 13, "an initial window of 2147483648"],
    ["a frame size that is too small", encodeSettings([[5, 16_383]]), 13, "a frame size of 16383"],
    ["a malformed PING", concat([settings, frame(6, 0, 0, hex("00"))]), 13, "a malformed PING"],
    ["a WINDOW_UPDATE of 0", concat([settings, encodeWindowUpdate(0, 0)]), 13, "a WINDOW_UPDATE of 0"],
    ["a malformed WINDOW_UPDATE", concat([settings, frame(8, 0, 0, hex("00"))]), 13, "a malformed WINDOW_UPDATE"],
    ["a window beyond 2^31", concat([settings, encodeWindowUpdate(0, 2 ** 31 - 1)]), 13, "a window beyond 2^31"],
    [
      "a flood of PING",
      concat([settings, ...new Array<Uint8Array>(limits.controlFrames + 1).fill(ping)]),
      8,
      "more than 1000 SETTINGS and PING",
    ],
    [
      "a flood of SETTINGS",
      concat(new Array<Uint8Array>(limits.controlFrames + 1).fill(settings)),
      8,
      "more than 1000",
    ],
  ];

  test.each(failing)("%s", (_, bytes, grpcCode, reason) => {
    for (const pieceBytes of [Math.max(1, bytes.length), 1, 13]) {
      const outcome = outcomeOf(bytes, pieceBytes);
      if (outcome.t !== "failed") throw new Error(`the outcome is ${outcome.t}`);
      expect(outcome.error).toMatchObject({ grpcCode, unreachable: false });
      expect(outcome.error.message).toContain(reason);
    }
  });

  test("cut anywhere, is the closed connection", () => {
    const bytes = answer(message);
    for (let length = 0; length < bytes.length; length++) {
      expect(outcomeOf(bytes.subarray(0, length), 50)).toMatchObject({ t: "failed", error: { grpcCode: 14 } });
    }
  });
});
