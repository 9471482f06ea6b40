import { writeFileSync } from "node:fs";

/** What every executable of ours has in it, as releases that are out have it. */
const mark = "pipette:executable:b9b2a6d0c1f84a6e";

/**
 * A small file that passes for an executable of ours, of its own content; the mark lies where two reads of it meet.
 * @param mebibytes behind the first one, to have the copying take longer
 */
export function writeSample(path: string, kind: string, mebibytes = 1): void {
  const mebibyte = 1024 * 1024;
  const filler = kind.repeat(Math.ceil(mebibyte / kind.length)).slice(0, mebibyte - 10);
  writeFileSync(path, `${filler}${mark}${filler.repeat(mebibytes)}`, { mode: 0o755 });
}
