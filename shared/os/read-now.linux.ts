import { intAt, openLibrary } from "./native.linux.ts";
import type { Ownership } from "./rights.ts";

/**
 * Reads by system calls, for what a plugin needs first. Bun's own functions go through its event loop and a thread
 * pool, which costs a process of a few milliseconds one millisecond.
 */

const symbols = {
  read: { args: ["i32", "ptr", "usize"], returns: "i32" },
  open: { args: ["ptr", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  access: { args: ["ptr", "i32"], returns: "i32" },
  statx: { args: ["i32", "ptr", "i32", "u32", "ptr"], returns: "i32" },
  clock_gettime: { args: ["i32", "ptr"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;
/** open(2): read-only, closed when another program is executed. */
const readOnly = 0o2000000;
const noSuchFile = 2;
/** statx(2): paths are relative to the working directory, and links are followed. */
const fromHere = -100;
const basicStats = 0x7ff;
/** `struct statx` in words of 32 bits: the sixth is the uid, the lower half of the eighth the mode. */
const statxWords = 64;
const notDirectory = 20;

type Calls = ReturnType<typeof openLibrary<typeof symbols>>;

let opened: { readonly calls: Calls } | undefined;

/** All functions are opened together and only once, because opening is what takes time. */
function calls(): Calls {
  opened ??= { calls: openLibrary("libc.so.6", symbols) };
  return opened.calls;
}

/** read(2): answers how many bytes were put into `into`, 0 at the end, -1 where it failed. Waits for them. */
export function openReader(): (fd: number, into: Uint8Array) => number {
  const c = calls();
  return (fd, into) => c?.read(fd, into, into.length) ?? -1;
}

/** The file's first bytes, `maxBytes` or fewer; `undefined` where it cannot be read. For files that answer with one read: those of /proc. */
export function readFileNow(path: string, maxBytes: number): Uint8Array | undefined {
  const c = calls();
  if (c === undefined) return readByNode(path, maxBytes);
  const fd = c.open(cString(path), readOnly);
  if (fd < 0) return undefined;
  const bytes = new Uint8Array(maxBytes);
  const length = c.read(fd, bytes, maxBytes);
  c.close(fd);
  return length < 0 ? undefined : bytes.subarray(0, length);
}

/** The fallback without a JIT, slower by a millisecond. */
function readByNode(path: string, maxBytes: number): Uint8Array | undefined {
  try {
    return process.getBuiltinModule("node:fs").readFileSync(path).subarray(0, maxBytes);
  } catch {
    return undefined;
  }
}

/** Whether nothing exists at this path; `false` also if that cannot be determined. */
export function isAbsentNow(path: string): boolean {
  const c = calls();
  if (c === undefined || c.access(cString(path), 0) === 0) return false;
  const errno = intAt(c.__errno_location());
  return errno === noSuchFile || errno === notDirectory;
}

/** Owner and mode of a file or directory, following links; `undefined` if it does not exist or cannot be read. */
export function ownershipNow(path: string): Ownership | undefined {
  const c = calls();
  if (c === undefined) return process.getBuiltinModule("node:fs").statSync(path, { throwIfNoEntry: false });
  const found = new Uint32Array(statxWords);
  if (c.statx(fromHere, cString(path), 0, basicStats, found) !== 0) return undefined;
  const [uid = 0, mode = 0] = [found[5], found[7]];
  return { uid, mode: mode & 0xffff };
}

/** clock_gettime(2): CLOCK_BOOTTIME, which also runs while the machine sleeps. */
const sinceBoot = 7;

/** `struct timespec` in words of 32 bits: seconds, of which the lower half lasts for a century, and nanoseconds. */
const timespec = new Uint32Array(4);

/** As `uptimeMs`. */
export function uptimeNow(): number | undefined {
  const c = calls();
  if (c === undefined) return uptimeByNode();
  if (c.clock_gettime(sinceBoot, timespec) !== 0) return undefined;
  return (timespec[0] ?? 0) * 1000 + (timespec[2] ?? 0) / 1_000_000;
}

/** The same clock, to a hundredth of a second. */
function uptimeByNode(): number | undefined {
  const seconds = Number.parseFloat(new TextDecoder().decode(readByNode("/proc/uptime", 64)));
  return Number.isNaN(seconds) ? undefined : seconds * 1000;
}

const cString = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`);
