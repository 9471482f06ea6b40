import { openReader } from "../os/read-now.linux.ts";

/** Most configurations are shorter. */
const partBytes = 16 * 1024;

/**
 * Standard input up to its end, or until more than `maxBytes` have come, so that a sender of gigabytes is answered
 * soon. A closed one reads as empty, as does /dev/null.
 */
export async function readStdin(maxBytes: number): Promise<Uint8Array> {
  const read = openReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length <= maxBytes) {
    const part = new Uint8Array(partBytes);
    const got = read(0, part);
    if (got === 0) break;
    parts.push(got > 0 ? part.subarray(0, got) : await readStream(maxBytes - length));
    if (got < 0) break;
    length += got;
  }
  return joined(parts);
}

/** Bun's own reader handles non-blocking pipes, and descriptors that are no files. */
async function readStream(maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = Bun.stdin.stream().getReader();
  while (length <= maxBytes) {
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
