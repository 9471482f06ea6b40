import { constants } from "node:fs";
import { Errno, errnoName } from "./errno.ts";
import { type Libc, pinned } from "./libc.ts";

/** A network namespace, held open. */
export interface NetworkNamespace extends Disposable {
  readonly path: string;
  readonly fd: number;
}

/** The namespace that this process lives in. */
export interface HomeNamespace extends NetworkNamespace {
  /** By which it is known. */
  readonly file: FileId;
}

/** Device and inode, in halves. */
type FileId = readonly [major: number, minor: number, high: number, low: number];

/** What a path turned out to be. */
export type OpenedNamespace =
  | { readonly t: "open"; readonly namespace: NetworkNamespace }
  /** Nothing lies there. */
  | { readonly t: "missing" }
  /** A file, or a namespace of another kind; what is left of `/run/netns/x` when its namespace was unmounted. */
  | { readonly t: "other" }
  /** The namespace that this process itself lives in. */
  | { readonly t: "own" }
  /** The file system refuses, with its reason. */
  | { readonly t: "refused"; readonly reason: string };

const NS_GET_NSTYPE = 0xb703;
const CLONE_NEWNET = 0x40000000;
const O_CLOEXEC = 0o2000000;
/** PATH_MAX. */
const pathBytes = 4096;
const AT_EMPTY_PATH = 0x1000;
const STATX_INO = 0x100;
/** struct statx, and in it, in words, the inode's number and both parts of the device's. */
const statxBytes = 256;
const inodeAt = 8;
const deviceAt = 34;

const encoder = new TextEncoder();
const path = pinned(pathBytes);
const noPath = pinned(1);
const statx = pinned(statxBytes);
const stat = { address: statx.address, words: new Uint32Array(statx.bytes.buffer) };

/**
 * Opens the network namespace at `path`, an absolute path such as `/run/netns/x` or `/proc/123/ns/net`.
 * @param home the process's own
 */
export function openNamespace(libc: Libc, at: string, home: HomeNamespace): OpenedNamespace {
  // Without O_NONBLOCK a FIFO at the path would hold the whole process.
  const fd = open(libc, at, constants.O_RDONLY | constants.O_NONBLOCK | O_CLOEXEC);
  if (fd === -Errno.ENOENT || fd === -Errno.ENOTDIR) return { t: "missing" };
  if (fd < 0) return { t: "refused", reason: errnoName(-fd) };
  const isNetwork = libc.calls.ioctl(fd, NS_GET_NSTYPE, null) === CLONE_NEWNET;
  if (isNetwork && !isSame(fileOf(libc, fd), home.file))
    return { t: "open", namespace: new HeldNamespace(libc, at, fd) };
  libc.calls.close(fd);
  return { t: isNetwork ? "own" : "other" };
}

/** A descriptor, or the negated error. By the C library: `node:fs` costs an ADD twice as much on cold caches. */
function open(libc: Libc, at: string, flags: number): number {
  const { read, written } = encoder.encodeInto(`${at}\0`, path.bytes);
  if (read <= at.length || written > pathBytes) return -Errno.ENAMETOOLONG;
  const fd = libc.calls.open(path.address, flags, 0);
  return fd < 0 ? -libc.errno() : fd;
}

const isSame = (one: FileId, other: FileId): boolean =>
  one[0] === other[0] && one[1] === other[1] && one[2] === other[2] && one[3] === other[3];

function fileOf(libc: Libc, fd: number): FileId {
  if (libc.calls.statx(fd, noPath.address, AT_EMPTY_PATH, STATX_INO, stat.address) !== 0)
    throw new Error(`Cannot tell the network namespace: the kernel answers ${errnoName(libc.errno())}`);
  const { words } = stat;
  return [words[deviceAt] ?? 0, words[deviceAt + 1] ?? 0, words[inodeAt + 1] ?? 0, words[inodeAt] ?? 0];
}

/** The calling thread's namespace: `/proc/self` would be the main thread's. */
export function openHome(libc: Libc): HomeNamespace {
  const at = "/proc/thread-self/ns/net";
  const fd = open(libc, at, constants.O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw new Error(`Cannot open "${at}": the kernel answers ${errnoName(-fd)}`);
  return Object.assign(new HeldNamespace(libc, at, fd), { file: fileOf(libc, fd) });
}

class HeldNamespace implements NetworkNamespace {
  readonly path: string;
  readonly fd: number;
  readonly #libc: Libc;
  #isOpen = true;

  constructor(libc: Libc, path: string, fd: number) {
    this.#libc = libc;
    this.path = path;
    this.fd = fd;
  }

  [Symbol.dispose](): void {
    if (this.#isOpen) this.#libc.calls.close(this.fd);
    this.#isOpen = false;
  }
}

/** The kernel refused to enter a namespace. */
export class SetnsError extends Error {
  override readonly name = "SetnsError";
  readonly errno: number;
  constructor(path: string, errno: number) {
    super(`Cannot enter the network namespace "${path}": the kernel answers ${errnoName(errno)}`);
    this.errno = errno;
  }
}

/**
 * Makes one system call inside another network namespace.
 *
 * A thread that the runtime starts meanwhile would stay in that namespace for ever, so `call` must be one FFI call that
 * allocates nothing. If the thread cannot switch back, the process ends, because it would configure the pod instead of
 * the node from then on.
 */
export function insideNamespace(
  libc: Libc,
  home: NetworkNamespace,
  target: NetworkNamespace,
  call: () => number,
): number {
  const { setns } = libc.calls;
  if (setns(target.fd, CLONE_NEWNET) !== 0) throw new SetnsError(target.path, libc.errno());
  try {
    return call();
  } finally {
    if (setns(home.fd, CLONE_NEWNET) !== 0) process.abort();
  }
}
