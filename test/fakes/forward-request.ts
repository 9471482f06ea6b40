import { uptimeMs } from "../../shared/os/uptime.ts";
import { concat } from "../../shared/rpc/h2-frames.ts";

/** For tests: the bytes that the small program in front of the executable sends, right or wrong as asked. */

export interface RequestText {
  readonly env?: Readonly<Record<string, string>> | Uint8Array;
  readonly stdin?: string | Uint8Array;
  readonly face?: number;
  readonly startedUs?: number;
  readonly untilUs?: number;
  readonly buildId?: Uint8Array;
  readonly protocol?: number;
  /** What the head says of the lengths, where it lies. */
  readonly envBytes?: number;
  readonly stdinBytes?: number;
}

const bytesOf = (text: string | Uint8Array): Uint8Array =>
  typeof text === "string" ? new TextEncoder().encode(text) : text;

export function encodeRequest(request: RequestText): Uint8Array {
  const { face = 0, buildId = new Uint8Array(16), protocol = 1 } = request;
  const { startedUs = Math.floor((uptimeMs() ?? 0) * 1000) } = request;
  const { env: given = {}, stdin: text = "", untilUs = startedUs + 1_000_000 } = request;
  const joined = (pairs: Readonly<Record<string, string>>): string =>
    Object.entries(pairs)
      .map(([name, value]) => `${name}=${value}\0`)
      .join("");
  const env = given instanceof Uint8Array ? given : bytesOf(joined(given as Readonly<Record<string, string>>));
  const stdin = bytesOf(text);
  const head = new Uint8Array(48);
  head.set([0, 0x50, 0x46, protocol]);
  const view = new DataView(head.buffer);
  view.setUint32(4, request.envBytes ?? env.length, true);
  view.setUint32(8, request.stdinBytes ?? stdin.length, true);
  view.setUint32(12, face, true);
  view.setBigUint64(16, BigInt(startedUs), true);
  view.setBigUint64(24, BigInt(untilUs), true);
  head.set(buildId, 32);
  return concat([head, env, stdin]);
}

export interface AnswerText {
  readonly kind: "done" | "pass" | "taken";
  readonly status: number;
  readonly moreMs: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** All answers in these bytes, of which none may be half. */
export function decodeAnswers(bytes: Uint8Array): readonly AnswerText[] {
  const answers: AnswerText[] = [];
  for (let at = 0; at < bytes.length; ) {
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, 24);
    if (view.getUint32(0, false) !== 0x00504101) throw new Error(`An answer begins with ${bytes.slice(at, at + 4)}`);
    const [kind, status, out, err, moreMs] = [4, 8, 12, 16, 20].map((offset) => view.getUint32(offset, true)) as [
      number,
      number,
      number,
      number,
      number,
    ];
    const text = (from: number, length: number): string => {
      if (at + from + length > bytes.length) throw new Error("An answer is cut off");
      return new TextDecoder().decode(bytes.subarray(at + from, at + from + length));
    };
    const name = (["done", "pass", "taken"] as const)[kind - 1];
    if (name === undefined) throw new Error(`An answer is of kind ${kind}`);
    answers.push({ kind: name, status, moreMs, stdout: text(24, out), stderr: text(24 + out, err) });
    at += 24 + out + err;
  }
  return answers;
}
