import { writeFileSync } from "node:fs";

/** What every executable of ours has in it, as releases that are out have it. */
const mark = "pipette:executable:b9b2a6d0c1f84a6e";

export interface SampleOptions {
  /** Behind the first one, to have the copying take longer. */
  readonly mebibytes?: number;
  /** The small program that it carries; absent: none, as an earlier release. */
  readonly carried?: Uint8Array;
}

/** A small file that passes for an executable of ours, of its own content; the mark lies where two reads of it meet. */
export function writeSample(path: string, kind: string, { mebibytes = 1, carried }: SampleOptions = {}): void {
  const mebibyte = 1024 * 1024;
  const filler = kind.repeat(Math.ceil(mebibyte / kind.length)).slice(0, mebibyte - 10);
  const inside = carried === undefined ? "" : `${mark}:carried:${Buffer.from(carried).toString("base64")}.`;
  writeFileSync(path, `${filler}${mark}${filler.repeat(mebibytes)}${inside}`, { mode: 0o755 });
}

/** What passes for the small program of such an executable. */
export const smallSample = (kind: string): Uint8Array => Buffer.from(`${kind}${mark}:small\0${kind.repeat(9_000)}`);
