/**
 * One entry of an archive. `link` is what a symbolic link points to, `target` the earlier entry that a hard link is
 * another name of; `pax` are records beyond those of POSIX, such as Windows' own.
 */
export type TarEntry = {
  readonly path: string;
  readonly pax?: Readonly<Record<string, string>>;
} & (
  | { readonly t: "file"; readonly mode: number; readonly bytes: Uint8Array }
  | { readonly t: "directory"; readonly mode: number }
  | { readonly t: "link"; readonly link: string }
  | { readonly t: "hardlink"; readonly target: string }
);

/** The kinds of entries that are files, and not a record about the next entry. */
type Kind = TarEntry["t"] | "pax";

const block = 512;
const typeFlags: Readonly<Record<Kind, string>> = { file: "0", hardlink: "1", link: "2", directory: "5", pax: "x" };
const longestName = 100;
const longestPrefix = 155;

/**
 * An uncompressed archive in POSIX ustar format, owned by root: the same entries and time give the same bytes.
 * @param mtime seconds since 1970
 * @throws where a path is longer than the format has room for
 */
export function tar(entries: readonly TarEntry[], mtime = 0): Uint8Array<ArrayBuffer> {
  const parts = entries.flatMap((entry) => [
    ...(entry.pax === undefined ? [] : paxRecords(entry.path, entry.pax, mtime)),
    header(entry.path, { kind: entry.t, mode: modeOf(entry), link: linkOf(entry), size: sizeOf(entry), mtime }),
    ...(entry.t === "file" ? padded(entry.bytes) : []),
  ]);
  return Buffer.concat([...parts, new Uint8Array(2 * block)]);
}

const modeOf = (entry: TarEntry): number => ("mode" in entry ? entry.mode : entry.t === "link" ? 0o777 : 0o755);
const linkOf = (entry: TarEntry): string =>
  entry.t === "link" ? entry.link : entry.t === "hardlink" ? entry.target : "";
const sizeOf = (entry: TarEntry): number => (entry.t === "file" ? entry.bytes.length : 0);

const padded = (bytes: Uint8Array): Uint8Array[] => [bytes, new Uint8Array((block - (bytes.length % block)) % block)];

function paxRecords(path: string, records: Readonly<Record<string, string>>, mtime: number): Uint8Array[] {
  const lines = Object.keys(records)
    .sort()
    .map((key) => paxRecord(key, records[key] ?? ""));
  const bytes = Buffer.from(lines.join(""));
  const name = `PaxHeaders.0/${path.replace(/\/$/, "")}`.slice(0, longestName);
  return [header(name, { kind: "pax", mode: 0o644, link: "", size: bytes.length, mtime }), ...padded(bytes)];
}

/** "LENGTH KEY=VALUE\n", where the length counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

/** If a path is too long for the name field, its directories go into the prefix field. */
function splitPath(path: string): readonly [string, string] {
  if (Buffer.byteLength(path) <= longestName) return ["", path];
  const at = path.lastIndexOf("/", longestPrefix);
  const parts = [path.slice(0, at), path.slice(at + 1)] as const;
  if (at < 1 || parts[1] === "" || Buffer.byteLength(parts[1]) > longestName) throw tooLong(path);
  return parts;
}

const tooLong = (path: string): Error =>
  new Error(`Cannot archive "${path}": the name is too long, wanted what a POSIX archive has room for`);

interface Header {
  readonly kind: Kind;
  readonly mode: number;
  readonly link: string;
  readonly size: number;
  readonly mtime: number;
}

function header(path: string, { kind, mode, link, size, mtime }: Header): Uint8Array {
  const bytes = Buffer.alloc(block);
  const [prefix, name] = splitPath(path);
  if (Buffer.byteLength(link) > longestName) throw tooLong(link);
  const octal = (value: number, at: number, length: number): void => {
    bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  };
  bytes.write(name, 0);
  bytes.write(prefix, 345);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(mtime, 136, 12);
  bytes.write(" ".repeat(8), 148, "latin1");
  bytes.write(typeFlags[kind], 156, "latin1");
  bytes.write(link, 157);
  bytes.write("ustar\x0000", 257, "latin1");
  for (const at of [265, 297]) bytes.write("root", at, "latin1");
  // Computed over the header with blanks in the place of the checksum.
  octal(
    bytes.reduce((sum, byte) => sum + byte),
    148,
    7,
  );
  return bytes;
}

/** Directories on the way to these paths, each before what is in it, with mode 755. */
export function directoriesOf(paths: readonly string[]): readonly TarEntry[] {
  const found = new Set<string>();
  for (const path of paths)
    for (let at = path.indexOf("/", 1); at > 0; at = path.indexOf("/", at + 1)) found.add(path.slice(0, at + 1));
  return [...found].sort().map((path) => ({ t: "directory", path, mode: 0o755 }));
}
