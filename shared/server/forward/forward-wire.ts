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

/** "PF" behind a zero, as a number without the protocol's byte; "PA" likewise. */
const requestMark = 0x46_50_00;
const answerMark = 0x41_50_00;
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
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if ((view.getUint32(0, true) & 0xff_ff_ff) !== requestMark) return { t: "garbage" };
  const envBytes = view.getUint32(4, true);
  const stdinBytes = view.getUint32(8, true);
  const face = faces[view.getUint32(12, true)];
  const isKnown = bytes[3] === protocol && face !== undefined;
  if (!isKnown || envBytes === 0 || envBytes > maxTextBytes || stdinBytes > maxTextBytes)
    return { t: "other", textBytes: envBytes + stdinBytes };
  const head: RequestHead = {
    envBytes,
    stdinBytes,
    face,
    startedUptimeMs: uint64At(view, 16) / 1000,
    untilUptimeMs: uint64At(view, 24) / 1000,
    buildId: bytes.slice(32, requestHeadBytes),
  };
  return { t: "call", head };
}

const uint64At = (view: DataView, at: number): number =>
  view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;

const strictly = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The caller's variables; `undefined` if they are ambiguous as text: a name that occurs twice, or bytes that are no
 * UTF-8.
 */
export function readVariables(bytes: Uint8Array): Readonly<Record<string, string>> | undefined {
  let text: string;
  try {
    text = strictly.decode(bytes);
  } catch {
    return undefined;
  }
  // Without a prototype, so that no name means something else.
  const variables: Record<string, string> = Object.create(null);
  for (let at = 0; at < text.length; ) {
    const equals = text.indexOf("=", at);
    const end = text.indexOf("\0", at);
    if (end < 0 || equals <= at || equals > end) return undefined;
    const name = text.slice(at, equals);
    if (variables[name] !== undefined) return undefined;
    variables[name] = text.slice(equals + 1, end);
    at = end + 1;
  }
  return text === "" ? undefined : variables;
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
  const encoder = new TextEncoder();
  const out = encoder.encode(stdout);
  const err = stderr === "" ? noText : encoder.encode(stderr);
  if (out.length + err.length > maxAnswerBytes) return undefined;
  const answer = answerHead(kinds.done, status, out.length, err.length, 0);
  answer.set(out, answerHeadBytes);
  answer.set(err, answerHeadBytes + out.length);
  return answer;
}

const noText = new Uint8Array(0);

/** Nothing has been and will be done: the caller runs the call itself. */
export const encodePass = (): Uint8Array => answerHead(kinds.pass, 0, 0, 0, 0);

/** The call is taken: the caller waits so long from now on. */
export const encodeTaken = (moreMs: number): Uint8Array => answerHead(kinds.taken, 0, 0, 0, moreMs);

const answerHeadBytes = 24;

/** An answer with room for its texts. */
function answerHead(kind: number, status: number, outBytes: number, errBytes: number, moreMs: number): Uint8Array {
  const bytes = new Uint8Array(answerHeadBytes + outBytes + errBytes);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, answerMark + protocol * 2 ** 24, true);
  view.setUint32(4, kind, true);
  view.setUint32(8, status, true);
  view.setUint32(12, outBytes, true);
  view.setUint32(16, errBytes, true);
  view.setUint32(20, moreMs, true);
  return bytes;
}
