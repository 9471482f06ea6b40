/** HTTP/2 frames as bytes (RFC 9113, sections 4 and 6). */

export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const frameHeaderBytes = 9;
/** What either side may send until the other allows more (section 4.2). */
export const initialFrameBytes = 16_384;
export const maxFrameBytes = 16_777_215;
/** Of a stream and of the connection until a setting or an update says otherwise (section 6.9.2). */
export const initialWindowBytes = 65_535;
export const maxWindowBytes = 2_147_483_647;

export const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Uint8Array;
}

export function encodeFrame(type: number, frameFlags: number, stream: number, payload: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(frameHeaderBytes + payload.length);
  bytes[0] = payload.length >>> 16;
  bytes[1] = payload.length >>> 8;
  bytes[2] = payload.length;
  bytes[3] = type;
  bytes[4] = frameFlags;
  writeUint32(bytes, 5, stream);
  bytes.set(payload, frameHeaderBytes);
  return bytes;
}

/** What the frame at this place says about the length of its payload; 0 while its header has not arrived whole. */
export const frameLength = (bytes: Uint8Array, at: number): number =>
  bytes.length - at < frameHeaderBytes ? 0 : readUint32(bytes, at) >>> 8;

/** The frame at this place, its payload a view; `undefined` while it has not arrived whole. */
export function readFrame(bytes: Uint8Array, at: number): Frame | undefined {
  const from = at + frameHeaderBytes;
  const to = from + frameLength(bytes, at);
  if (bytes.length < from || bytes.length < to) return undefined;
  return {
    type: bytes[at + 3] ?? 0,
    flags: bytes[at + 4] ?? 0,
    stream: readUint32(bytes, at + 5) & maxWindowBytes,
    payload: bytes.subarray(from, to),
  };
}

/** The payload without its padding (sections 6.1 and 6.2) and without `skip` bytes in front; `undefined` if that cannot be. */
export function unpadded(frame: Frame, skip: number): Uint8Array | undefined {
  const padded = (frame.flags & flags.padded) !== 0;
  const from = (padded ? 1 : 0) + skip;
  const to = frame.payload.length - (padded ? (frame.payload[0] ?? 0) : 0);
  return from > to ? undefined : frame.payload.subarray(from, to);
}

export function encodeSettings(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const payload = new Uint8Array(6 * settings.length);
  let at = 0;
  for (const [id, value] of settings) {
    payload[at] = id >>> 8;
    payload[at + 1] = id;
    writeUint32(payload, at + 2, value);
    at += 6;
  }
  return encodeFrame(FrameType.settings, 0, 0, payload);
}

export function encodeWindowUpdate(stream: number, more: number): Uint8Array {
  const payload = new Uint8Array(4);
  writeUint32(payload, 0, more);
  return encodeFrame(FrameType.windowUpdate, 0, stream, payload);
}

export function encodeReset(stream: number, code: number): Uint8Array {
  const payload = new Uint8Array(4);
  writeUint32(payload, 0, code);
  return encodeFrame(FrameType.rstStream, 0, stream, payload);
}

/** @param reason for a person to read */
export function encodeGoaway(lastStream: number, code: number, reason: string): Uint8Array {
  const text = new TextEncoder().encode(reason);
  const payload = new Uint8Array(8 + text.length);
  writeUint32(payload, 0, lastStream);
  writeUint32(payload, 4, code);
  payload.set(text, 8);
  return encodeFrame(FrameType.goaway, 0, 0, payload);
}

/** Big-endian; bytes beyond the end read as 0, so check the length first. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] ?? 0) * 16777216 + (((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0))
  );
}

export function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
