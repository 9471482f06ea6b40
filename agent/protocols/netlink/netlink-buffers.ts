import { maxIfnameBytes } from "../../../shared/cni/names.ts";
import { MessageType } from "./constants.ts";
import { pinned } from "./libc.ts";
import { MessageWriter } from "./message-writer.ts";

/** struct ifreq: the name in 16 bytes, then a union. */
const ifreqBytes = 40;
const ifreqUnionAt = 16;
/** The kernel cuts dumps into datagrams of 32 KiB at most when the reader has that much room. */
export const receiveBytes = 64 * 1024;
/** One batch for a pod with many addresses and routes is a few kB, the packet rules of a bridge are some 20. */
const sendBytes = 64 * 1024;

/** struct nlmsghdr and an errno. */
const leastAnswerBytes = 20;

/** struct ifreq, for one that asks about an interface by its name. */
class Ifreq {
  readonly #memory = pinned(ifreqBytes);
  readonly #name = this.#memory.bytes.subarray(0, maxIfnameBytes);
  readonly address = this.#memory.address;
  /** What is answered, in words: in the interpreter, which runs the first ADDs, one takes a third of a call of `DataView`. */
  readonly union = new Uint32Array(this.#memory.bytes.buffer, ifreqUnionAt);
  /** The hardware address, in a struct sockaddr. */
  readonly mac = this.#memory.bytes.subarray(ifreqUnionAt + 2, ifreqUnionAt + 8);

  name(ifname: string): this {
    this.#name.fill(0);
    encoder.encodeInto(ifname, this.#name);
    return this;
  }
}

const encoder = new TextEncoder();

/** Buffers for all sockets of one thread: a request and its answers never interleave with another's. */
export class NetlinkBuffers {
  readonly out = pinned(sendBytes);
  readonly in = pinned(receiveBytes);
  readonly #words = new Uint32Array(this.in.bytes.buffer);
  readonly writer = new MessageWriter(this.out.bytes);
  readonly ifreq = new Ifreq();
  /** Its union is a pointer to the next. */
  readonly ethtoolIfreq = new Ifreq();
  readonly #ethtool = pinned(8);
  /** struct ethtool_value: command and answer. */
  readonly ethtool = new Uint32Array(this.#ethtool.bytes.buffer);
  /** The value of an option that is on. */
  readonly one = pinned(4);

  constructor() {
    this.one.bytes[0] = 1;
    const pointer = new BigUint64Array(this.ethtoolIfreq.union.buffer, ifreqUnionAt, 1);
    pointer[0] = BigInt(this.#ethtool.address);
  }

  /**
   * The errno that answers this request, 0 for an acknowledgement, where a datagram is that answer and nothing else, as
   * nearly all are: to read it as a message takes ten times as long.
   * @param size of the datagram, in bytes
   */
  errnoFor(sequence: number, size: number): number | undefined {
    const words = this.#words;
    // struct nlmsghdr: the length, the type with its flags, the sequence, the port; then the errno of struct nlmsgerr.
    const isItsAnswer =
      size >= leastAnswerBytes &&
      words[0] === size &&
      ((words[1] ?? 0) & 0xffff) === MessageType.ERROR &&
      words[2] === sequence;
    return isItsAnswer ? 0 - ((words[4] ?? 0) | 0) : undefined;
  }
}
