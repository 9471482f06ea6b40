import { concat, encodeFrame, FrameType, flags, writeUint32 } from "../../../shared/rpc/h2-frames.ts";
import { encodeHeaders, type Header } from "../../../shared/rpc/hpack.ts";
import { prefixed } from "../../../shared/rpc/message-frame.ts";

/** For tests: what a server sends, frame by frame, right or wrong as asked. */

export const hex = (digits: string): Uint8Array =>
  Uint8Array.from({ length: digits.length / 2 }, (_, i) => Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16));

export const uint32 = (value: number): Uint8Array => {
  const bytes = new Uint8Array(4);
  writeUint32(bytes, 0, value);
  return bytes;
};

export const empty = new Uint8Array(0);
export const settings: Uint8Array = encodeFrame(FrameType.settings, 0, 0, empty);
export const settingsAck: Uint8Array = encodeFrame(FrameType.settings, flags.ack, 0, empty);
export const answerHeaders: readonly Header[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];
export const okTrailers: readonly Header[] = [["grpc-status", "0"]];

export const headers = (list: readonly Header[], more = 0): Uint8Array =>
  encodeFrame(FrameType.headers, flags.endHeaders | more, 1, encodeHeaders(list));

export const trailers = (list: readonly Header[]): Uint8Array => headers(list, flags.endStream);

export const data = (payload: Uint8Array, more = 0): Uint8Array => encodeFrame(FrameType.data, more, 1, payload);

export const reset = (code: number): Uint8Array => encodeFrame(FrameType.rstStream, 0, 1, uint32(code));

export const goaway = (lastStream: number, code: number, reason = ""): Uint8Array =>
  encodeFrame(FrameType.goaway, 0, 0, concat([uint32(lastStream), uint32(code), new TextEncoder().encode(reason)]));

/** The shortest good answer. */
export const answer = (message: Uint8Array): Uint8Array =>
  concat([settings, settingsAck, headers(answerHeaders), data(prefixed(message)), trailers(okTrailers)]);

/** Numbers from 0 to below a bound, the same for every run with this seed. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * below);
  };
}
