/** One entry of an archive; `link` is what a symbolic link points to. */
export type TarEntry =
  | { readonly t: "file"; readonly path: string; readonly mode: number; readonly bytes: Uint8Array }
  | { readonly t: "directory"; readonly path: string; readonly mode: number }
  | { readonly t: "link"; readonly path: string; readonly link: string };

const block = 512;
const typeFlags = { file: "0", link: "2", directory: "5" } as const;

/** An uncompressed archive in POSIX ustar format, owned by root, of the year 1970: the same entries give the same bytes. */
export function tar(entries: readonly TarEntry[]): Uint8Array {
  const parts = entries.flatMap((entry) => {
    const bytes = entry.t === "file" ? entry.bytes : new Uint8Array();
    return [header(entry, bytes.length), bytes, new Uint8Array((block - (bytes.length % block)) % block)];
  });
  return Buffer.concat([...parts, new Uint8Array(2 * block)]);
}

function header(entry: TarEntry, size: number): Uint8Array {
  const bytes = Buffer.alloc(block);
  const octal = (value: number, at: number, length: number): void => {
    bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  };
  bytes.write(entry.path, 0, 100, "latin1");
  octal(entry.t === "link" ? 0o777 : entry.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  bytes.write(" ".repeat(8), 148, "latin1");
  bytes.write(typeFlags[entry.t], 156, "latin1");
  if (entry.t === "link") bytes.write(entry.link, 157, 100, "latin1");
  bytes.write("ustar\x0000", 257, "latin1");
  // Over the header with blanks in the checksum's own place.
  octal(
    bytes.reduce((sum, byte) => sum + byte),
    148,
    7,
  );
  return bytes;
}
