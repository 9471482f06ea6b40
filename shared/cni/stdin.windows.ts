/**
 * Standard input up to its end, or until more than `maxBytes` have come. On Windows only synchronous reads work for all
 * kinds of input (streams fail for anonymous pipes and plain files); a closed one answers EISDIR or EOF and reads as
 * empty.
 */
export async function readStdin(maxBytes: number): Promise<Uint8Array> {
  const { readSync } = await import("node:fs");
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length <= maxBytes) {
    const part = new Uint8Array(64 * 1024);
    const read = readPart(readSync, part);
    if (read === "again") continue;
    if (read === 0) break;
    parts.push(part.subarray(0, read));
    length += read;
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

type ReadSync = (fd: number, into: Uint8Array, offset: number, length: number, position: null) => number;

function readPart(readSync: ReadSync, part: Uint8Array): number | "again" {
  try {
    return readSync(0, part, 0, part.length, null);
  } catch (caught) {
    const code = caught instanceof Error && "code" in caught ? caught.code : undefined;
    if (code === "EAGAIN") return "again";
    if (code === "EOF" || code === "EISDIR") return 0;
    throw caught;
  }
}
