import { intAt, openLibrary } from "./native.linux.ts";

/**
 * Reading by the system's own calls, for what a plugin needs before it can do anything else: Bun's ways to read go
 * through its event loop and a pool of threads, which costs a process that lives for some milliseconds one of them.
 */

const symbols = {
  read: { args: ["i32", "ptr", "usize"], returns: "i32" },
  open: { args: ["ptr", "i32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  access: { args: ["ptr", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;
/** open(2): read-only, closed when another program is executed. */
const readOnly = 0o2000000;
const noSuchFile = 2;
const notDirectory = 20;

type Calls = ReturnType<typeof openLibrary<typeof symbols>>;

let opened: { readonly calls: Calls } | undefined;

/** All of them at once, and once: it is the opening that takes time. */
function calls(): Calls {
  opened ??= { calls: openLibrary("libc.so.6", symbols) };
  return opened.calls;
}

/** read(2): answers how many bytes were put into `into`, 0 at the end, -1 where it failed. Waits for them. */
export function openReader(): (fd: number, into: Uint8Array) => number {
  const c = calls();
  return (fd, into) => c?.read(fd, into, into.length) ?? -1;
}

/** The file's first bytes, `mostBytes` or fewer; `undefined` where it cannot be read. For files that answer with one read: those of /proc. */
export function readFileNow(path: string, mostBytes: number): Uint8Array | undefined {
  const c = calls();
  if (c === undefined) return readByNode(path, mostBytes);
  const fd = c.open(cString(path), readOnly);
  if (fd < 0) return undefined;
  const bytes = new Uint8Array(mostBytes);
  const length = c.read(fd, bytes, mostBytes);
  c.close(fd);
  return length < 0 ? undefined : bytes.subarray(0, length);
}

/** Slower by a millisecond, and needs no JIT. */
function readByNode(path: string, mostBytes: number): Uint8Array | undefined {
  try {
    return process.getBuiltinModule("node:fs").readFileSync(path).subarray(0, mostBytes);
  } catch {
    return undefined;
  }
}

/** Whether there is nothing at this path; `false` also where that cannot be seen. */
export function isAbsentNow(path: string): boolean {
  const c = calls();
  if (c === undefined || c.access(cString(path), 0) === 0) return false;
  const errno = intAt(c.__errno_location());
  return errno === noSuchFile || errno === notDirectory;
}

const cString = (text: string): Uint8Array => new TextEncoder().encode(`${text}\0`);
