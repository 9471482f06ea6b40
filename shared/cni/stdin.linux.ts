import { openReader } from "../os/read-now.linux.ts";

/** Most configurations are shorter. */
const partBytes = 16 * 1024;

/**
 * Standard input up to its end, or until there is more of it than `mostBytes`: whoever sends
 * gigabytes is answered as soon as that is known. A closed one reads as empty, as does /dev/null.
 */
export async function readStdin(mostBytes: number): Promise<Uint8Array> {
  const read = openReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length <= mostBytes) {
    const part = new Uint8Array(partBytes);
    const got = read(0, part);
    if (got === 0) break;
    parts.push(got > 0 ? part.subarray(0, got) : await readStream(mostBytes - length));
    if (got < 0) break;
    length += got;
  }
  return joined(parts);
}

/** Bun's own reader copes with a pipe that does not wait, and with what is no file at all. */
async function readStream(mostBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = Bun.stdin.stream().getReader();
  while (length <= mostBytes) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
  }
  return joined(parts);
}

const joined = (parts: Uint8Array[]): Uint8Array =>
  parts.length === 1 && parts[0] !== undefined
    ? parts[0]
    : Bun.concatArrayBuffers(parts, Number.POSITIVE_INFINITY, true);
