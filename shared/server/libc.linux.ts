import { dlopen, FFIType, type Pointer, ptr, read } from "bun:ffi";

/** What the agent needs of the C library and Bun has no function for: a file lock and a datagram to systemd. */
export interface Libc {
  /** `flock(2)`, exclusive, without waiting; `false` where another process holds it. The lock dies with the process. */
  lockFile(fd: number): boolean;
  /** One datagram to a unix socket; a path starting with "@" is an abstract name. Answers 0 or an errno. */
  sendDatagram(path: string, text: string): number;
}

const symbols = {
  flock: { args: ["i32", "i32"], returns: "i32" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  sendto: { args: ["i32", "ptr", "usize", "i32", "ptr", "u32"], returns: FFIType.i64_fast },
  close: { args: ["i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** <sys/file.h>, <sys/socket.h>, <sys/un.h> of Linux, the same on every architecture that Bun compiles for. */
const lockExclusive = 2;
const lockNoWait = 4;
const unixFamily = 1;
const datagram = 2;
const closeOnExec = 0o2000000;
const noSignal = 0x4000;
const longestPath = 107;
const nameTooLong = 36;
const wouldBlock = 11;
const interrupted = 4;

/** Opened on first use: the library is there on every Linux, but not on the other system. */
export function openLibc(): Libc {
  const c = dlopen("libc.so.6", symbols).symbols;
  const errno = (): number => read.i32(c.__errno_location() as Pointer, 0);
  return {
    lockFile(fd) {
      for (;;) {
        if (c.flock(fd, lockExclusive | lockNoWait) === 0) return true;
        const error = errno();
        if (error === wouldBlock) return false;
        if (error !== interrupted) throw new Error(`flock answers errno ${error}`);
      }
    },
    sendDatagram(path, text) {
      const address = unixAddress(path);
      if (address === undefined) return nameTooLong;
      const body = pinned(new TextEncoder().encode(text));
      const fd = c.socket(unixFamily, datagram | closeOnExec, 0);
      if (fd < 0) return errno();
      const sent = c.sendto(fd, ptr(body), body.length, noSignal, ptr(address), address.length);
      const error = Number(sent) < 0 ? errno() : 0;
      c.close(fd);
      return error;
    },
  };
}

/** `struct sockaddr_un`: family, then the path; an abstract name starts with a zero byte and has no final one. */
function unixAddress(path: string): Uint8Array | undefined {
  const name = new TextEncoder().encode(path);
  if (name.length === 0 || name.length > longestPath) return undefined;
  const abstract = name[0] === 64;
  const address = new Uint8Array(new ArrayBuffer(2 + name.length + (abstract ? 0 : 1)));
  address[0] = unixFamily;
  address.set(name, 2);
  if (abstract) address[2] = 0;
  return address;
}

/** A copy whose address stays: a small plain `Uint8Array` moves when its buffer is first touched. */
function pinned(bytes: Uint8Array): Uint8Array {
  const copy = new Uint8Array(new ArrayBuffer(bytes.length));
  copy.set(bytes);
  return copy;
}
