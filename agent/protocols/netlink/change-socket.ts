import { Errno } from "./errno.ts";
import { type Libc, pinned } from "./libc.ts";
import { type RawMessage, readMessages } from "./message-reader.ts";
import { NetlinkError } from "./netlink-error.ts";
import { AF_NETLINK } from "./netlink-socket.ts";

const MSG_DONTWAIT = 0x40;
const MSG_TRUNC = 0x20;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
/**
 * The kernel's buffer of unread messages: enough for some hundred pods that come and go. `drain` reports an overflow.
 */
const keptBytes = 2 * 1024 * 1024;
/** One message about an interface has 2 kB, those about a transaction of packet rules come together in some 4. */
const readBytes = 32 * 1024;

/** Multicast groups, as bits: linux/rtnetlink.h and nfnetlink.h, RTNLGRP_* and NFNLGRP_*. */
export const ChangeGroup = {
  LINK: 1 << 0,
  IPV4_IFADDR: 1 << 4,
  IPV4_ROUTE: 1 << 6,
  IPV6_IFADDR: 1 << 8,
  IPV6_ROUTE: 1 << 10,
  IPV4_NETCONF: 1 << 23,
  IPV6_NETCONF: 1 << 24,
  NFTABLES: 1 << 6,
} as const;

/**
 * The kernel's multicast messages about changes in one network namespace. They are queued until they are read, as long
 * as there is room, and do not wake the process: a pod that starts causes ten.
 */
export class ChangeSocket implements Disposable {
  readonly #libc: Libc;
  readonly #buffer = pinned(readBytes);
  #fd: number;

  /** Takes over `fd`. @throws {NetlinkError} if the kernel refuses the subscription */
  constructor(libc: Libc, fd: number, groups: number) {
    this.#libc = libc;
    this.#fd = fd;
    const size = pinned(4);
    new DataView(size.bytes.buffer).setUint32(0, keptBytes, true);
    libc.calls.setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, size.address, 4);
    // struct sockaddr_nl: family, padding, port (the kernel gives one), groups.
    const address = pinned(12);
    const view = new DataView(address.bytes.buffer);
    view.setUint16(0, AF_NETLINK, true);
    view.setUint32(8, groups, true);
    if (libc.calls.bind(fd, address.address, 12) === 0) return;
    const errno = libc.errno();
    this[Symbol.dispose]();
    throw new NetlinkError("listen to the kernel's changes", errno);
  }

  /**
   * Reads all that there is, without waiting.
   * @param visit gets each message, whose bytes the next one overwrites
   * @returns whether some were missed
   * @throws {NetlinkError | MalformedMessage}
   */
  drain(visit: (message: RawMessage) => void): boolean {
    let missed = false;
    for (;;) {
      const { bytes, address } = this.#buffer;
      const size = this.#libc.calls.recv(this.#fd, address, bytes.length, MSG_DONTWAIT | MSG_TRUNC);
      if (size > bytes.length) {
        missed = true;
        continue;
      }
      if (size >= 0) {
        for (const message of readMessages(bytes.subarray(0, size))) visit(message);
        continue;
      }
      const errno = this.#libc.errno();
      if (errno === Errno.EAGAIN) return missed;
      // The overflow is reported once; later messages are received again.
      if (errno !== Errno.ENOBUFS) throw new NetlinkError("hear of the kernel's changes", errno);
      missed = true;
    }
  }

  [Symbol.dispose](): void {
    if (this.#fd < 0) return;
    this.#libc.calls.close(this.#fd);
    this.#fd = -1;
  }
}
