import { concat } from "../../rpc/h2-frames.ts";

/**
 * The bytes of a forwarded call, as `forward/PROTOCOL.md` has them: what the small program in front of the executable
 * sends to a daemon instead of running the plugin, and the answers.
 */

/** HTTP/2 begins with "P": the first byte tells the two protocols of a socket apart. */
export const firstByte = 0;

export const requestHeadBytes = 48;

/**
 * The length of each of a request's two texts. A call with a longer one runs in a process of its own, since it would
 * delay all others here.
 */
export const maxTextBytes = 64 * 1024;
/** Both texts of an answer. */
export const maxAnswerBytes = 4 * 1024 * 1024;

const requestMark = [0, 0x50, 0x46];
const answerMark = [0, 0x50, 0x41];
const protocol = 1;

/** The plugins by their number on the wire. */
export const faces = ["pipette", "pipette-ipam"] as const;
export type Face = (typeof faces)[number];

export interface RequestHead {
  readonly envBytes: number;
  readonly stdinBytes: number;
  readonly face: Face;
  /** When the caller had read its standard input, by `uptimeMs`. */
  readonly startedUptimeMs: number;
  /** Until when it waits, unless the call is taken. */
  readonly untilUptimeMs: number;
  readonly buildId: Uint8Array;
}

export type HeadOutcome =
  | { readonly t: "call"; readonly head: RequestHead }
  /** A call that only the caller itself can run; its texts of this length follow anyway. */
  | { readonly t: "other"; readonly textBytes: number }
  | { readonly t: "garbage" };

/** @param bytes `requestHeadBytes` of them */
export function readHead(bytes: Uint8Array): HeadOutcome {
  if (requestMark.some((byte, at) => bytes[at] !== byte)) return { t: "garbage" };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [envBytes, stdinBytes] = [view.getUint32(4, true), view.getUint32(8, true)];
  const face = faces[view.getUint32(12, true)];
  const isKnown = bytes[3] === protocol && face !== undefined;
  if (!isKnown || envBytes === 0 || envBytes > maxTextBytes || stdinBytes > maxTextBytes)
    return { t: "other", textBytes: envBytes + stdinBytes };
  const head: RequestHead = {
    envBytes,
    stdinBytes,
    face,
    startedUptimeMs: Number(view.getBigUint64(16, true)) / 1000,
    untilUptimeMs: Number(view.getBigUint64(24, true)) / 1000,
    buildId: bytes.slice(32, requestHeadBytes),
  };
  return { t: "call", head };
}

/**
 * The caller's variables; `undefined` if they are ambiguous as text: a name that occurs twice, or bytes that are no
 * UTF-8.
 */
export function readVariables(bytes: Uint8Array): Readonly<Record<string, string>> | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
  if (!text.endsWith("\0")) return undefined;
  const variables = new Map<string, string>();
  for (const pair of text.slice(0, -1).split("\0")) {
    const equals = pair.indexOf("=");
    if (equals < 1 || variables.has(pair.slice(0, equals))) return undefined;
    variables.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  return Object.fromEntries(variables);
}

/** The outcome of a call that was carried out, or refused by the plugin. */
export interface Done {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

const kinds = { done: 1, pass: 2, taken: 3 } as const;

/** `undefined` where it is longer than an answer can be. */
export function encodeDone({ status, stdout, stderr }: Done): Uint8Array | undefined {
  const [out, err] = [new TextEncoder().encode(stdout), new TextEncoder().encode(stderr)];
  if (out.length + err.length > maxAnswerBytes) return undefined;
  return concat([answerHead(kinds.done, status, out.length, err.length, 0), out, err]);
}

/** Nothing has been and will be done: the caller runs the call itself. */
export const encodePass = (): Uint8Array => answerHead(kinds.pass, 0, 0, 0, 0);

/** The call is taken: the caller waits so long from now on. */
export const encodeTaken = (moreMs: number): Uint8Array => answerHead(kinds.taken, 0, 0, 0, moreMs);

function answerHead(...numbers: readonly number[]): Uint8Array {
  const bytes = new Uint8Array([...answerMark, protocol, ...new Array(numbers.length * 4).fill(0)]);
  const view = new DataView(bytes.buffer);
  for (const [i, number] of numbers.entries()) view.setUint32(4 + 4 * i, number, true);
  return bytes;
}
