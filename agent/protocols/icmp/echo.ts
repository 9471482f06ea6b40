import { pause } from "../../../shared/async/abortable.ts";
import type { Family, Ip } from "../../../shared/net/ip.ts";
import { Errno, ipBytes, Libc, pinned } from "../netlink/mod.ts";
import { answers, echoRequest, tokenBytes } from "./echo-message.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const IPPROTO_ICMP = 1;
const IPPROTO_ICMPV6 = 58;
const SOL_IP = 0;
const SOL_IPV6 = 41;
const SOL_RAW = 255;
const SOL_ICMPV6 = 58;
const ICMP_FILTER = 1;
const ICMPV6_FILTER = 1;
const IP_MTU_DISCOVER = 10;
const IPV6_MTU_DISCOVER = 23;
const IPV6_DONTFRAG = 62;
/** Sets "don't fragment", and does not stop at what the kernel has learned of the way before. */
const PMTUDISC_PROBE = 3;
const MSG_DONTWAIT = 0x40;
const CLOCK_REALTIME = 0;
/** When the packet that was read last came in: by the kernel, however late it is read. */
const SIOCGSTAMPNS = 0x8907;

/** The largest packet that is sent with one socket, and read from it. */
const largestPacket = 65_535;
/** Packets that a look reads at most: of raw sockets others see to it that there are many. */
const maxRead = 64;
/** Pauses between looks: an answer of the same rack is there after the first, and who does not answer is not asked often. */
const looksMs = [1, 1, 2, 4, 8, 16, 32, 50] as const;

/** What became of one question. `refused`: the kernel or a router says why it cannot arrive. */
export type EchoOutcome =
  | { readonly t: "answered"; readonly rttMicros: number }
  | { readonly t: "silent" }
  | { readonly t: "refused"; readonly errno: number };

export interface EchoQuestion {
  readonly from: Ip;
  readonly to: Ip;
  /** Bytes of the packet with its IP header, which must arrive in one piece; absent: the smallest, in whatever pieces. */
  readonly wholeBytes?: number;
  readonly timeoutMs: number;
}

/**
 * Asks hosts for an echo, each question by a socket of its own, which the kernel gives nothing but what its peer sends. The
 * kernel's own kind for this needs no right where `net.ipv4.ping_group_range` has the agent's group; otherwise a raw socket
 * needs CAP_NET_RAW. Linux only.
 */
export class Echo {
  readonly #libc: Libc;
  readonly #received = pinned(largestPacket);
  readonly #address = pinned(28);
  readonly #option = pinned(32);
  readonly #time = pinned(16);
  #lastId = Math.floor(Math.random() * 0xffff);

  /** @throws where the system forbids what Bun needs for calls of the C library */
  constructor() {
    this.#libc = new Libc();
  }

  /** @throws {EchoError} where no socket can be had */
  async ask({ from, to, wholeBytes, timeoutMs }: EchoQuestion, signal: AbortSignal): Promise<EchoOutcome> {
    const { fd, isRaw } = this.#open(to.family);
    try {
      const refused = this.#connect(fd, from, to, wholeBytes !== undefined);
      if (refused !== undefined) return refused;
      const token = crypto.getRandomValues(new Uint8Array(tokenBytes));
      this.#lastId = (this.#lastId + 1) & 0xffff;
      const question = echoRequest(to.family, this.#lastId, token, wholeBytes);
      const sent = pinned(question.length);
      sent.bytes.set(question);
      // Has the kernel note when packets come in.
      this.#libc.calls.ioctl(fd, SIOCGSTAMPNS, this.#time.address);
      const sentMicros = this.#nowMicros();
      const monotonicMs = performance.now();
      if (this.#libc.calls.send(fd, sent.address, question.length, 0) < 0) return this.#refusal();
      const until = monotonicMs + timeoutMs;
      for (let look = 0; !signal.aborted; look++) {
        const leftMs = until - performance.now();
        await pause(Math.min(looksMs[look] ?? 50, Math.max(0, leftMs)), signal);
        const seen = this.#look(fd, isRaw, to.family, token);
        if (seen === "refused") return this.#refusal();
        if (seen === "answered") {
          const elapsedMicros = (performance.now() - monotonicMs) * 1000;
          return { t: "answered", rttMicros: this.#rtt(fd, sentMicros, elapsedMicros) };
        }
        if (leftMs <= 0) break;
      }
      return { t: "silent" };
    } finally {
      this.#libc.calls.close(fd);
    }
  }

  #open(family: Family): { readonly fd: number; readonly isRaw: boolean } {
    const { calls } = this.#libc;
    const [domain, protocol] = family === 4 ? [AF_INET, IPPROTO_ICMP] : [AF_INET6, IPPROTO_ICMPV6];
    const own = calls.socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
    if (own >= 0) return { fd: own, isRaw: false };
    const fd = calls.socket(domain, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0) throw new EchoError(this.#libc.errno());
    // Nothing but answers, bits of what is left out.
    const bytes = this.#option.bytes.fill(0xff);
    const type = family === 4 ? 0 : 129;
    bytes[type >> 3] = 0xff & ~(1 << (type & 7));
    if (family === 4) calls.setsockopt(fd, SOL_RAW, ICMP_FILTER, this.#option.address, 4);
    else calls.setsockopt(fd, SOL_ICMPV6, ICMPV6_FILTER, this.#option.address, 32);
    return { fd, isRaw: true };
  }

  /** From the node's own address among its pods', so that it takes the way of their packets, and answers find it. */
  #connect(fd: number, from: Ip, to: Ip, isWhole: boolean): EchoOutcome | undefined {
    const { calls } = this.#libc;
    if (isWhole) {
      const [level, discover] = to.family === 4 ? [SOL_IP, IP_MTU_DISCOVER] : [SOL_IPV6, IPV6_MTU_DISCOVER];
      this.#set(fd, level, discover, PMTUDISC_PROBE);
      if (to.family === 6) this.#set(fd, SOL_IPV6, IPV6_DONTFRAG, 1);
    }
    if (calls.bind(fd, this.#address.address, this.#write(from)) !== 0) return this.#refusal();
    if (calls.connect(fd, this.#address.address, this.#write(to)) !== 0) return this.#refusal();
    return undefined;
  }

  #set(fd: number, level: number, option: number, value: number): void {
    new DataView(this.#option.bytes.buffer).setUint32(0, value, true);
    this.#libc.calls.setsockopt(fd, level, option, this.#option.address, 4);
  }

  /** `struct sockaddr_in` or `sockaddr_in6`; answers its length. */
  #write(ip: Ip): number {
    const bytes = this.#address.bytes.fill(0);
    new DataView(bytes.buffer).setUint16(0, ip.family === 4 ? AF_INET : AF_INET6, true);
    bytes.set(ipBytes(ip), ip.family === 4 ? 4 : 8);
    return ip.family === 4 ? 16 : 28;
  }

  #look(fd: number, isRaw: boolean, family: Family, token: Uint8Array): "answered" | "nothing" | "refused" {
    const { bytes, address } = this.#received;
    for (let i = 0; i < maxRead; i++) {
      const size = this.#libc.calls.recv(fd, address, bytes.length, MSG_DONTWAIT);
      if (size >= 0) {
        if (answers(family, bytes.subarray(0, size), isRaw, token)) return "answered";
        continue;
      }
      const errno = this.#libc.errno();
      return errno === Errno.EAGAIN || errno === Errno.EINTR ? "nothing" : "refused";
    }
    return "nothing";
  }

  #refusal(): EchoOutcome {
    return { t: "refused", errno: this.#libc.errno() };
  }

  /** By the kernel's time of the answer; by ours where it has none, or a clock was set meanwhile. */
  #rtt(fd: number, sentMicros: number, elapsedMicros: number): number {
    if (this.#libc.calls.ioctl(fd, SIOCGSTAMPNS, this.#time.address) !== 0) return Math.round(elapsedMicros);
    const tookMicros = this.#timeMicros() - sentMicros;
    return Math.round(tookMicros >= 0 && tookMicros <= elapsedMicros ? tookMicros : elapsedMicros);
  }

  #nowMicros(): number {
    this.#libc.calls.clock_gettime(CLOCK_REALTIME, this.#time.address);
    return this.#timeMicros();
  }

  /** Of `struct timespec`; a double has room for the microseconds of some centuries. */
  #timeMicros(): number {
    const view = new DataView(this.#time.bytes.buffer);
    return Number(view.getBigInt64(0, true)) * 1e6 + Number(view.getBigInt64(8, true)) / 1000;
  }
}

/** No socket for questions can be had. */
class EchoError extends Error {
  readonly errno: number;

  constructor(errno: number) {
    super(
      errno === Errno.EPERM || errno === Errno.EACCES
        ? "this process may not ask for an echo, wanted CAP_NET_RAW, or its group in net.ipv4.ping_group_range"
        : `the kernel gives no socket for it (errno ${errno})`,
    );
    this.errno = errno;
  }
}
