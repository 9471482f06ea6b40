import { describe, expect, test } from "vitest";
import {
  answer,
  answerHeaders,
  data,
  empty,
  goaway,
  headers,
  okTrailers,
  randomNumbers,
  reset,
  settings,
  settingsAck,
  trailers,
} from "../../test/fakes/http2/scripted-server.ts";
import { limits } from "../limits.ts";
import { H2Call } from "./h2-client.ts";
import {
  concat,
  encodeFrame,
  encodeSettings,
  encodeWindowUpdate,
  FrameType,
  flags,
  readFrame,
  readUint32,
} from "./h2-frames.ts";
import type { Header } from "./hpack.ts";
import { prefixed } from "./message-frame.ts";
import { GrpcCode } from "./rpc-error.ts";

/** What a call sends, and that no answer whatever brings it to throw or to wait for more than the end. */

const requestHeaders: readonly Header[] = [
  [":method", "POST"],
  [":path", "/a.b/C"],
];
const newCall = (request: Uint8Array = empty): H2Call => new H2Call(requestHeaders, request, "Cannot call");
const message = new TextEncoder().encode("a message");
const frame = (type: number, frameFlags: number, stream: number, payload: Uint8Array): Uint8Array =>
  encodeFrame(type, frameFlags, stream, payload);
const ping = frame(FrameType.ping, 0, 0, new Uint8Array(8).fill(7));

interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Uint8Array;
}

function framesOf(bytes: Uint8Array): SentFrame[] {
  const frames: SentFrame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const next = readFrame(bytes, at)!;
    frames.push(next);
    at += 9 + next.payload.length;
  }
  return frames;
}

describe("what the client sends", () => {
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

  test("is one piece: preface, SETTINGS, WINDOW_UPDATE, HEADERS, DATA", () => {
    const bytes = newCall(message).take();
    expect(new TextDecoder().decode(bytes.subarray(0, 24))).toBe(preface);
    const frames = framesOf(bytes.subarray(24));
    expect(frames.map(({ type, flags: set, stream }) => [type, set, stream])).toEqual([
      [FrameType.settings, 0, 0],
      [FrameType.windowUpdate, 0, 0],
      [FrameType.headers, flags.endHeaders, 1],
      [FrameType.data, flags.endStream, 1],
    ]);
    expect(frames[3]?.payload).toEqual(prefixed(message));
  });

  test("acknowledges SETTINGS and PING, and no acknowledgement", () => {
    const call = newCall();
    call.take();
    call.receive(concat([settings, settingsAck, ping, frame(FrameType.ping, flags.ack, 0, new Uint8Array(8))]));
    expect(call.take()).toEqual(concat([settingsAck, frame(FrameType.ping, flags.ack, 0, new Uint8Array(8).fill(7))]));
    expect(call.take()).toEqual(empty);
  });

  test("stays within the server's windows and frame size, as they change", () => {
    const request = new Uint8Array(400_000).map((_, i) => i % 253);
    const call = newCall(request);
    const sent: Uint8Array[] = [];
    let ended = false;
    const collect = (bytes: Uint8Array): number => {
      const parts = framesOf(bytes).filter((sentFrame) => sentFrame.type === FrameType.data);
      for (const part of parts) {
        sent.push(part.payload);
        ended ||= (part.flags & flags.endStream) !== 0;
      }
      return parts.reduce((sum, part) => sum + part.payload.length, 0);
    };
    expect(collect(call.take().subarray(24))).toBe(65_535);
    // The stream's window falls below zero; an update of the connection alone opens nothing.
    call.receive(concat([encodeSettings([[4, 1000]]), encodeWindowUpdate(0, 500_000)]));
    expect(collect(call.take())).toBe(0);
    call.receive(encodeWindowUpdate(1, 65_535 - 1000));
    expect(collect(call.take())).toBe(0);
    call.receive(encodeWindowUpdate(1, 5));
    expect(collect(call.take())).toBe(5);
    call.receive(
      encodeSettings([
        [4, 101_000],
        [5, 50_000],
      ]),
    );
    expect(collect(call.take())).toBe(100_000);
    expect(Math.max(...sent.map((part) => part.length))).toBe(50_000);
    call.receive(encodeWindowUpdate(1, 1_000_000));
    expect(collect(call.take())).toBe(400_005 - 165_540);
    expect(ended).toBe(true);
    expect(Buffer.compare(concat(sent), prefixed(request))).toBe(0);
  });

  test.each([
    ["", limits.messageBytes, 16_384, 0],
    [", padding included", 2 * limits.receiveWindowBytes, 255, 255],
  ])("opens its own windows again for an answer that is longer than they are%s", (_, bytes, partBytes, padding) => {
    const long = new Uint8Array(bytes).fill(3);
    const call = newCall();
    const granted = { stream: 0, connection: 65_535 };
    const grant = (bytes: Uint8Array): void => {
      for (const { type, stream, payload } of framesOf(bytes)) {
        if (type === FrameType.settings) granted.stream += readUint32(payload, 8);
        if (type === FrameType.windowUpdate) granted[stream === 0 ? "connection" : "stream"] += readUint32(payload, 0);
      }
    };
    grant(call.take().subarray(24));
    expect(granted).toEqual({ stream: limits.receiveWindowBytes, connection: limits.receiveWindowBytes });
    call.receive(concat([settings, headers(answerHeaders)]));
    expect(framesOf(call.take())).toHaveLength(1);
    const body = prefixed(long);
    for (let at = 0; at < body.length; at += partBytes) {
      const plain = body.subarray(at, at + partBytes);
      const padded = concat([new Uint8Array([padding]), plain, new Uint8Array(padding)]);
      const part = padding === 0 ? plain : padded;
      granted.stream -= part.length;
      granted.connection -= part.length;
      expect(Math.min(granted.stream, granted.connection)).toBeGreaterThanOrEqual(0);
      call.receive(data(part, padding === 0 ? 0 : flags.padded));
      grant(call.take());
    }
    call.receive(trailers(okTrailers));
    expect(call.outcome.t).toBe("answered");
    expect(call.outcome.t === "answered" && Buffer.compare(call.outcome.message, long)).toBe(0);
  });

  test("is nothing where the headers do not fit into one frame", () => {
    const call = new H2Call([["x", "y".repeat(20_000)]], empty, "Cannot call");
    expect(call.outcome).toMatchObject({ t: "failed", error: { grpcCode: GrpcCode.invalidArgument } });
    expect(call.take()).toEqual(empty);
  });
});

test("answers that are changed by chance, 30000 times, always come to an outcome", () => {
  const random = randomNumbers(9113);
  const good = answer(message);
  const scripts = [
    good,
    concat([
      settings,
      trailers([
        [":status", "200"],
        ["grpc-status", "9"],
        ["grpc-message", "a%20b"],
      ]),
    ]),
    concat([settings, ping, headers([[":status", "100"]]), goaway(1, 0, "x"), good.subarray(9)]),
    concat([
      encodeSettings([
        [4, 70_000],
        [5, 20_000],
      ]),
      encodeWindowUpdate(1, 9),
      headers(answerHeaders),
      reset(8),
    ]),
  ];
  const seen = { answered: 0, failed: 0, pending: 0 };
  for (let i = 0; i < 30_000; i++) {
    const bytes = concat([scripts[random(scripts.length)]!, scripts[random(scripts.length)]!]);
    for (let changes = random(6); changes >= 0; changes--) bytes[random(bytes.length)] = random(256);
    const call = newCall();
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + random(bytes.length);
      call.receive(bytes.subarray(at, end));
      call.take();
      at = end;
    }
    call.ended();
    seen[call.outcome.t]++;
  }
  expect(seen.pending).toBe(0);
  // Neither all refused nor all let through: the changes reach what is behind the first check.
  expect(seen.answered).toBeGreaterThan(1000);
  expect(seen.failed).toBeGreaterThan(1000);
});
