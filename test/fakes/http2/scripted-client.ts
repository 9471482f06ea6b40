import {
  concat,
  encodeFrame,
  encodeSettings,
  type Frame,
  FrameType,
  flags,
  frameHeaderBytes,
  preface,
  readFrame,
  readUint32,
} from "../../../shared/rpc/h2-frames.ts";
import { encodeHeaders, type Header, HpackDecoder } from "../../../shared/rpc/hpack.ts";
import { prefixed } from "../../../shared/rpc/message-frame.ts";
import type { TurnTaker } from "../../../shared/server/http2/call-queue.ts";
import type { RequestMemory } from "../../../shared/server/http2/request-memory.ts";
import { ServerConnection } from "../../../shared/server/http2/server-connection.ts";
import { type ServerCall, ServerStream } from "../../../shared/server/http2/server-stream.ts";

/** For tests: what a client sends, frame by frame, right or wrong as asked, and what it gets. */

export const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
export const opening: Uint8Array = concat([ascii(preface), encodeSettings([])]);

/** A request's headers, with some of them replaced, added, or left out where the value is `undefined`. */
export function requestHeaders(change: Readonly<Record<string, string | undefined>> = {}): Header[] {
  const usual = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/a.B/C",
    ":authority": "/var/run/x.sock",
    te: "trailers",
    "content-type": "application/grpc",
  };
  const list = Object.entries({ ...usual, ...change });
  return list.flatMap(([name, value]): Header[] => (value === undefined ? [] : [[name, value]]));
}

export const headers = (stream: number, list: readonly Header[] = requestHeaders(), more = 0): Uint8Array =>
  encodeFrame(FrameType.headers, flags.endHeaders | more, stream, encodeHeaders(list));

export const data = (stream: number, payload: Uint8Array, more = 0): Uint8Array =>
  encodeFrame(FrameType.data, more, stream, payload);

/** A whole call with one short message. */
export const wholeCall = (stream: number, message: Uint8Array = ascii("hello")): Uint8Array =>
  concat([headers(stream), data(stream, prefixed(message), flags.endStream)]);

/** What a scripted handler does with a call. */
export type Handle = (call: ServerCall, message: Uint8Array) => void | Promise<void>;

/** Answers with the request. */
export const echo: Handle = (call, message) => {
  call.send(message);
  call.finish(0);
};

export interface Answer {
  readonly headers: readonly Header[];
  readonly data: Uint8Array;
  readonly trailers: readonly Header[];
}

/** Where nobody else waits. */
export const atOnce: TurnTaker = {
  enter: (one) => {
    while (one.beginNext());
  },
  leave: () => undefined,
};

/** A connection under test with both ends in hand. */
export class ScriptedClient {
  readonly memory: RequestMemory = { heldBytes: 0 };
  readonly connection: ServerConnection;
  /** What became of each call, in the order of events: `open 1`, `request 1`, `gone 1`, `room 1`. */
  readonly events: string[] = [];
  readonly calls: ServerCall[] = [];
  readonly frames: Frame[] = [];
  readonly #hpack = new HpackDecoder(4096, 1_000_000);

  constructor(handle: Handle = echo) {
    const tell = (what: string, call: ServerCall): void => {
      this.events.push(`${what} ${call instanceof ServerStream ? call.id : "?"}`);
    };
    this.connection = new ServerConnection({
      memory: this.memory,
      turns: atOnce,
      wake: () => undefined,
      open: (call) => {
        tell("open", call);
        this.calls.push(call);
        return {
          request: async (message) => {
            tell("request", call);
            await handle(call, message);
          },
          room: () => tell("room", call),
          gone: () => tell("gone", call),
        };
      },
    });
  }

  /** Hands the bytes in, in pieces of that size, and lets handlers run; answers the frames that come back. */
  async send(bytes: Uint8Array, pieceBytes = bytes.length): Promise<Frame[]> {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      // A copy that is spoilt afterwards: what the connection keeps must be its own.
      const piece = bytes.slice(at, at + pieceBytes);
      this.connection.receive(piece);
      piece.fill(0xee);
    }
    return this.read();
  }

  /** What comes once the handlers had their turn. */
  async read(): Promise<Frame[]> {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    const frames: Frame[] = [];
    for (let bytes = this.connection.take(); bytes !== undefined; bytes = this.connection.take()) {
      for (let at = 0; at < bytes.length; ) {
        const frame = readFrame(bytes, at);
        if (frame === undefined) throw new Error("half a frame came");
        frames.push(frame);
        at += frameHeaderBytes + frame.payload.length;
      }
    }
    this.frames.push(...frames);
    return frames;
  }

  /** The answer on this stream among all frames so far. Reads every header block, so call it once. */
  answers(): Map<number, Answer> {
    const answers = new Map<number, { headers: Header[]; data: Uint8Array; trailers: Header[] }>();
    for (const { type, stream, flags: frameFlags, payload } of this.frames) {
      const answer = answers.get(stream) ?? { headers: [], data: new Uint8Array(0), trailers: [] };
      if (type === FrameType.data) answer.data = concat([answer.data, payload]);
      if (type === FrameType.headers) {
        const list = this.#hpack.decode(payload);
        if (frameFlags & flags.endStream) answer.trailers = list;
        else answer.headers = list;
      }
      if (stream > 0) answers.set(stream, answer);
    }
    return answers;
  }

  /** The code of the RST_STREAM on this stream. */
  resetOf(stream: number): number | undefined {
    const frame = this.frames.find((each) => each.type === FrameType.rstStream && each.stream === stream);
    return frame === undefined ? undefined : readUint32(frame.payload, 0);
  }

  /** Of the last GOAWAY: last stream and code. */
  goaway(): readonly [lastStream: number, code: number] | undefined {
    const frame = this.frames.findLast((each) => each.type === FrameType.goaway);
    return frame === undefined ? undefined : [readUint32(frame.payload, 0), readUint32(frame.payload, 4)];
  }
}
