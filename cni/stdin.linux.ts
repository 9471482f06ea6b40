/**
 * Standard input up to its end, or until there is more of it than `mostBytes`: whoever sends
 * gigabytes is answered as soon as that is known. A closed one reads as empty, as does /dev/null.
 */
export async function readStdin(mostBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = Bun.stdin.stream().getReader();
  while (length <= mostBytes) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    length += value.length;
  }
  if (chunks.length === 1) return chunks[0] ?? new Uint8Array();
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
