import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { errnoName } from "./errno.ts";
import type { Libc } from "./libc.ts";

/** A network namespace, held open. */
export interface NetworkNamespace extends Disposable {
  readonly path: string;
  readonly fd: number;
}

/** The namespace that this process lives in. */
export interface HomeNamespace extends NetworkNamespace {
  /** Device and inode, by which it is known. */
  readonly file: string;
}

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

/**
 * Opens the network namespace at `path`, an absolute path such as `/run/netns/x` or `/proc/123/ns/net`.
 * @param home the process's own
 */
export function openNamespace(libc: Libc, path: string, home: HomeNamespace): OpenedNamespace {
  let fd: number;
  try {
    // Without O_NONBLOCK a FIFO at the path would hold the whole process.
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | O_CLOEXEC);
  } catch (caught) {
    const code = caught instanceof Error && "code" in caught ? caught.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return { t: "missing" };
    return { t: "refused", reason: String(code ?? caught) };
  }
  const isNetwork = libc.calls.ioctl(fd, NS_GET_NSTYPE, null) === CLONE_NEWNET;
  if (isNetwork && fileOf(fd) !== home.file) return { t: "open", namespace: held(path, fd) };
  closeSync(fd);
  return { t: isNetwork ? "own" : "other" };
}

/** Both numbers have 32 bits. */
function fileOf(fd: number): string {
  const { dev, ino } = fstatSync(fd);
  return `${dev} ${ino}`;
}

/** The calling thread's namespace: `/proc/self` would be the main thread's. */
export function openHome(): HomeNamespace {
  const path = "/proc/thread-self/ns/net";
  const fd = openSync(path, constants.O_RDONLY | O_CLOEXEC);
  return Object.assign(held(path, fd), { file: fileOf(fd) });
}

function held(path: string, fd: number): NetworkNamespace {
  let open = true;
  return {
    path,
    fd,
    [Symbol.dispose]() {
      if (open) closeSync(fd);
      open = false;
    },
  };
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
