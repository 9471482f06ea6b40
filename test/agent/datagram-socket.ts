import { dlopen, FFIType, ptr } from "bun:ffi";

/** A receiver of unix datagrams, which neither Bun nor Node has: what systemd is to the agent. */
export class DatagramSocket implements Disposable {
  readonly #libc = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    recv: { args: ["i32", "ptr", "usize", "i32"], returns: FFIType.i64_fast },
    close: { args: ["i32"], returns: "i32" },
  }).symbols;
  readonly #fd: number;

  /** A name that begins with "@" is an abstract one. */
  constructor(name: string) {
    const path = new TextEncoder().encode(name);
    const address = new Uint8Array(new ArrayBuffer(2 + path.length + (name.startsWith("@") ? 0 : 1)));
    address[0] = 1; // AF_UNIX
    address.set(path, 2);
    if (name.startsWith("@")) address[2] = 0;
    this.#fd = this.#libc.socket(1, 2, 0);
    if (this.#libc.bind(this.#fd, ptr(address), address.length) !== 0) throw new Error(`Cannot bind "${name}"`);
  }

  /** The datagram that has come first; `undefined` where none has. */
  receive(): string | undefined {
    const buffer = new Uint8Array(new ArrayBuffer(256));
    const dontWait = 0x40;
    const length = Number(this.#libc.recv(this.#fd, ptr(buffer), buffer.length, dontWait));
    return length < 0 ? undefined : new TextDecoder().decode(buffer.subarray(0, length));
  }

  [Symbol.dispose](): void {
    this.#libc.close(this.#fd);
  }
}
