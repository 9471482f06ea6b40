import { dlopen, FFIType } from "bun:ffi";
import type { NetworkNamespace } from "../network-namespace.ts";
import { nameIndex } from "./name-index.ts";

const AF_PACKET = 17;
const SOCK_RAW = 3;
const NONBLOCK_CLOEXEC = 0o4000 | 0o2000000;
/** ETH_P_ALL, in network order. */
const everything = 0x0300;
/** Of `recv`: the length of the whole frame, also where it was longer. */
const MSG_TRUNC = 0x20;
const maxBytes = 65_536;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
/** The receive buffer: room for some thousand small frames, for which the kernel counts several times their size. */
const waitingBytes = 4 * 1024 * 1024;

const libc = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  send: { args: ["i32", "ptr", "usize", "i32"], returns: FFIType.i64_fast },
  recvfrom: { args: ["i32", "ptr", "usize", "i32", "ptr", "ptr"], returns: FFIType.i64_fast },
  close: { args: ["i32"], returns: "i32" },
} as const).symbols;

/** `sll_pkttype` of what this interface sent itself. */
const outgoing = 4;

/** Sends and receives frames as bytes on an interface of a namespace, as a pod's root can. */
export class RawLink implements Disposable {
  readonly #socket: number;
  readonly #buffer = new Uint8Array(new ArrayBuffer(maxBytes));
  readonly #from = new Uint8Array(new ArrayBuffer(20));
  readonly #fromLength = new Uint8Array(new ArrayBuffer(4));

  private constructor(socket: number) {
    this.#socket = socket;
  }

  static async open(namespace: NetworkNamespace, ifname: string): Promise<RawLink> {
    const index = await nameIndex(namespace, ifname);
    const socket = namespace.within(() => libc.socket(AF_PACKET, SOCK_RAW | NONBLOCK_CLOEXEC, everything));
    if (socket < 0) throw new Error(`Cannot open a packet socket for "${ifname}": not allowed`);
    const place = new Uint8Array(new ArrayBuffer(20));
    const view = new DataView(place.buffer);
    view.setUint16(0, AF_PACKET, true);
    view.setUint16(2, everything, true);
    view.setInt32(4, index, true);
    const link = new RawLink(socket);
    libc.setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, Int32Array.of(waitingBytes), 4);
    if (libc.bind(socket, place, place.length) === 0) {
      link.received(); // Drops frames of other interfaces from before it was bound.
      return link;
    }
    link[Symbol.dispose]();
    throw new Error(`Cannot bind a packet socket to "${ifname}"`);
  }

  /** @throws where the kernel takes no more, or the frame is too long for the interface */
  send(frame: Uint8Array): void {
    const pinned = new Uint8Array(new ArrayBuffer(frame.length));
    pinned.set(frame);
    const sent = Number(libc.send(this.#socket, pinned, pinned.length, 0));
    if (sent !== frame.length) throw new Error(`Cannot send a frame of ${frame.length} bytes: the kernel took ${sent}`);
  }

  /**
   * Frames received since the last call, without those that this interface sent. VLAN tags that the kernel took off are
   * missing.
   */
  received(): Uint8Array[] {
    const frames: Uint8Array[] = [];
    for (;;) {
      new DataView(this.#fromLength.buffer).setUint32(0, this.#from.length, true);
      const length = Number(
        libc.recvfrom(this.#socket, this.#buffer, maxBytes, MSG_TRUNC, this.#from, this.#fromLength),
      );
      if (length < 0) return frames;
      if (this.#from[10] !== outgoing) frames.push(this.#buffer.slice(0, length));
    }
  }

  [Symbol.dispose](): void {
    libc.close(this.#socket);
  }
}
