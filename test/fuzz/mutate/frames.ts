import type { Chance, Mutator } from "../engine/target.ts";
import { byteMutators } from "./bytes.ts";

/** How a stream of bytes falls into frames, and how a frame gets a length that fits after it was changed. */
export interface FrameFormat {
  /** The length of the frame that begins at `at`, from 1 up; what is cut short counts to the end. */
  lengthAt(bytes: Uint8Array, at: number): number;
  /** Writes the frame's length into it. */
  seal(frame: Uint8Array): void;
  /** Where its payload begins. */
  readonly headBytes: number;
}

const one = <T>(from: readonly T[], chance: Chance): T => from[chance(from.length)] as T;

export function framesOf(bytes: Uint8Array, format: FrameFormat): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let at = 0; at < bytes.length && found.length < 5000; ) {
    const length = Math.max(1, format.lengthAt(bytes, at));
    found.push(bytes.subarray(at, at + length));
    at += length;
  }
  return found;
}

function changed(frame: Uint8Array, other: Uint8Array, format: FrameFormat, chance: Chance): Uint8Array {
  if (chance(4) === 0) return one(byteMutators, chance)(frame, other, chance);
  // Its head stays, its payload changes, and its length is right again.
  const payload = one(byteMutators, chance)(frame.subarray(format.headBytes), other.subarray(format.headBytes), chance);
  const out = new Uint8Array(format.headBytes + payload.length);
  out.set(frame.subarray(0, format.headBytes));
  out.set(payload, format.headBytes);
  format.seal(out);
  return out;
}

/** Leaves frames out, doubles them, lets them change places, brings others' in, and changes one within. */
export function frameMutator(format: FrameFormat): Mutator {
  return (input, other, chance) => {
    const frames = framesOf(input, format);
    const others = framesOf(other, format);
    if (frames.length === 0) return other;
    const at = chance(frames.length);
    const from = others.length === 0 ? frames : others;
    switch (chance(7)) {
      case 0:
        frames.splice(at, 1);
        break;
      case 1: {
        const times = chance(6) === 0 ? chance(1200) : 1;
        for (let i = 0; i < times; i++) frames.splice(at, 0, frames[at] as Uint8Array);
        break;
      }
      case 2:
        frames.push(...frames.splice(at, 1));
        break;
      case 3:
        frames.splice(at, 0, one(from, chance));
        break;
      case 4:
        frames.splice(at, frames.length, ...from.slice(chance(from.length)));
        break;
      default:
        frames[at] = changed(frames[at] as Uint8Array, one(from, chance), format, chance);
    }
    return new Uint8Array(Buffer.concat(frames));
  };
}

const view = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** RFC 9113: 24 bits of payload length, type, flags, stream. */
export const http2Frames: FrameFormat = {
  headBytes: 9,
  lengthAt: (bytes, at) =>
    bytes[at] === 0x50 ? 24 : 9 + (bytes[at] ?? 0) * 65_536 + (bytes[at + 1] ?? 0) * 256 + (bytes[at + 2] ?? 0),
  seal: (frame) => frame.set([0, (frame.length - 9) >> 8, (frame.length - 9) & 255]),
};

/** OpenFlow: version, type, 16 bits of length, xid. */
export const openflowFrames: FrameFormat = {
  headBytes: 8,
  lengthAt: (bytes, at) => (bytes[at + 2] ?? 0) * 256 + (bytes[at + 3] ?? 0),
  seal: (frame) => frame.length >= 4 && view(frame).setUint16(2, frame.length),
};

/** A watch of Kubernetes in protobuf: 32 bits of the length that follows. */
export const watchFrames: FrameFormat = {
  headBytes: 4,
  lengthAt: (bytes, at) => (at + 4 <= bytes.length ? 4 + view(bytes).getUint32(at) : 4),
  seal: (frame) => frame.length >= 4 && view(frame).setUint32(0, frame.length - 4),
};

/** Netlink: 32 bits of length in the machine's order; each message begins at a multiple of four. */
export const netlinkFrames: FrameFormat = {
  headBytes: 16,
  lengthAt: (bytes, at) => (at + 4 <= bytes.length ? (view(bytes).getUint32(at, true) + 3) & ~3 : 4),
  seal: (frame) => frame.length >= 4 && view(frame).setUint32(0, frame.length, true),
};

/** Protocol Buffers: one field after the other, of which those with a length can be sealed. */
export const protobufFields: FrameFormat = {
  headBytes: 2,
  lengthAt(bytes, at) {
    const [tag, afterTag] = varint(bytes, at);
    const type = tag & 7;
    if (type === 1) return afterTag + 8 - at;
    if (type === 5) return afterTag + 4 - at;
    const [value, end] = varint(bytes, afterTag);
    return (type === 2 ? end + value : end) - at;
  },
  seal: (frame) => {
    if (((frame[0] ?? 0) & 7) === 2 && frame.length - 2 < 128) frame[1] = frame.length - 2;
  },
};

function varint(bytes: Uint8Array, at: number): [value: number, end: number] {
  let value = 0;
  for (let i = 0; i < 5; i++) {
    const byte = bytes[at + i] ?? 0;
    value += (byte & 127) * 2 ** (7 * i);
    if (byte < 128) return [value, at + i + 1];
  }
  return [value, at + 5];
}

/** A field that holds a message, changed as one: a length that lies keeps what lies behind from being read. */
export function nestedMutator(format: FrameFormat): Mutator {
  const inner = frameMutator(format);
  return (input, other, chance) => {
    const fields = framesOf(input, format);
    const at = fields.findIndex((field) => ((field[0] ?? 0) & 7) === 2 && chance(3) === 0);
    const field = fields[at];
    if (field === undefined) return inner(input, other, chance);
    const [length, begin] = varint(field, 1);
    const payload =
      chance(3) === 0
        ? nestedMutator(format)(field.subarray(begin), other, chance)
        : inner(field.subarray(begin, begin + length), other.subarray(2), chance);
    const head = [field[0] as number, (payload.length & 127) | 128, (payload.length >> 7) & 127];
    fields[at] = new Uint8Array(Buffer.concat([Uint8Array.from(head), payload]));
    return new Uint8Array(Buffer.concat(fields));
  };
}
