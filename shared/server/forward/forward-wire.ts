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

/**
 * Both heads are words in the byte order of every processor that runs this, and are read as such: a call of `DataView`
 * takes the interpreter three times as long.
 * @param bytes `requestHeadBytes` of them, beginning at a multiple of four in their memory
 */
export function readHead(bytes: Uint8Array): HeadOutcome {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, requestHeadBytes / 4);
  const mark = words[0] ?? 0;
  if ((mark & 0xff_ff_ff) !== requestMark) return { t: "garbage" };
  const envBytes = words[1] ?? 0;
  const stdinBytes = words[2] ?? 0;
  const face = faces[words[3] ?? 0];
  const isKnown = mark >>> 24 === protocol && face !== undefined;
  if (!isKnown || envBytes === 0 || envBytes > maxTextBytes || stdinBytes > maxTextBytes)
    return { t: "other", textBytes: envBytes + stdinBytes };
  const head: RequestHead = {
    envBytes,
    stdinBytes,
    face,
    startedUptimeMs: millisecondsIn(words, 4),
    untilUptimeMs: millisecondsIn(words, 6),
    buildId: bytes.subarray(32),
  };
  return { t: "call", head };
}

/** Of 64 bits of microseconds, lower half first. */
const millisecondsIn = (words: Uint32Array, at: number): number =>
  ((words[at] ?? 0) + (words[at + 1] ?? 0) * 2 ** 32) / 1000;

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
  const out = encoder.encode(stdout);
  const err = stderr === "" ? undefined : encoder.encode(stderr);
  const [outBytes, errBytes] = [out.length, err?.length ?? 0];
  if (outBytes + errBytes > maxAnswerBytes) return undefined;
  const answer = answerHead(kinds.done, status, outBytes, errBytes, 0);
  answer.set(out, answerHeadBytes);
  if (err !== undefined) answer.set(err, answerHeadBytes + outBytes);
  return answer;
}

const encoder = new TextEncoder();

/** Nothing has been and will be done: the caller runs the call itself. */
export const encodePass = (): Uint8Array => answerHead(kinds.pass, 0, 0, 0, 0);

/** The call is taken: the caller waits so long from now on. */
export const encodeTaken = (moreMs: number): Uint8Array => answerHead(kinds.taken, 0, 0, 0, moreMs);

const answerHeadBytes = 24;

/** An answer with room for its texts. */
function answerHead(kind: number, status: number, outBytes: number, errBytes: number, moreMs: number): Uint8Array {
  const bytes = new Uint8Array(answerHeadBytes + outBytes + errBytes);
  const words = new Uint32Array(bytes.buffer, 0, answerHeadBytes / 4);
  words[0] = answerMark + protocol * 2 ** 24;
  words[1] = kind;
  words[2] = status;
  words[3] = outBytes;
  words[4] = errBytes;
  words[5] = moreMs;
  return bytes;
}
