import { write } from "node:fs";
import { nextTurn } from "../../../shared/async/next-turn.ts";
import { Flag, Iff, MessageType } from "./constants.ts";
import { Errno } from "./errno.ts";
import { addressOf, type Libc, pinned } from "./libc.ts";
import type { Link } from "./link.ts";
import { MalformedMessage, type RawMessage, readAnswer, readMessages } from "./message-reader.ts";
import { type Message, MessageWriter } from "./message-writer.ts";
import { type NetlinkBuffers, receiveBytes } from "./netlink-buffers.ts";
import { NetlinkError } from "./netlink-error.ts";
import { BatchMessage, batchSubsystem } from "./nftables/numbers.ts";

export const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 3 | 0o2000000;
/** linux/netlink.h */
export const Protocol = { ROUTE: 0, NETFILTER: 12, GENERIC: 16 } as const;
const SOL_NETLINK = 270;
/** EXT_ACK: sentences with errors. CAP_ACK: do not send the request back. GET_STRICT_CHK: filters in dumps count. */
const options = [11, 10, 12];
const MSG_DONTWAIT = 0x40;
const MSG_TRUNC = 0x20;

const SIOCGIFFLAGS = 0x8913;
const SIOCGIFHWADDR = 0x8927;
const SIOCGIFINDEX = 0x8933;
const SIOCETHTOOL = 0x8946;
const ETHTOOL_GLINK = 0x0a;
const ETHTOOL_STXCSUM = 0x17;

/** A transaction of packet rules cannot be cut: the policies of 5,000 rules for one node are some 10 MB at its start. */
const mostTransactionBytes = 64 * 1024 * 1024;
const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
/** A socket sends no more at once than its buffer has, of which this much is free at least. */
const sentBytes = 128 * 1024;
/** Attempts of a dump, which is repeated if changes disturb it; after that an error is reported. */
const dumpAttempts = 10;

/** What an error calls a request; its text is made only then. */
type Asked = Pick<Message, "action">;

/** struct nfgenmsg, whose last two bytes are in network byte order. */
const batchHeader = (writer: MessageWriter): void => void writer.u8x4(0, 0, 0, batchSubsystem);

/**
 * Opens a netlink socket in the calling thread's network namespace and answers the descriptor, or a
 * negative number with errno set. Nothing but the one call: it runs inside another namespace too.
 */
export function openDescriptor(libc: Libc, protocol: number = Protocol.ROUTE): number {
  return libc.calls.socket(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol);
}

/**
 * One netlink socket, of rtnetlink or for packet filters. It stays in the namespace where it was opened. The kernel does all work inside
 * the send, so the answers are there when it returns and nothing here ever waits, `post` apart.
 */
export class NetlinkSocket implements Disposable {
  readonly #libc: Libc;
  readonly #buffers: NetlinkBuffers;
  /** Of sockets by which this process changes something in its own namespace. */
  readonly #ports: Set<number> | undefined;
  #fd: number;
  #port = 0;
  #sequence = 0;

  /**
   * Takes over `fd`.
   * @param ports a set to which it adds its port, so that changes made by this process are recognised
   */
  constructor(libc: Libc, buffers: NetlinkBuffers, fd: number, ports?: Set<number>) {
    this.#libc = libc;
    this.#ports = ports;
    this.#buffers = buffers;
    this.#fd = fd;
    // Without one of these options the kernel's errors are poorer or its dumps longer, but not wrong.
    for (const option of options) libc.calls.setsockopt(fd, SOL_NETLINK, option, buffers.one.address, 4);
  }

  /**
   * Sends all messages at once; each is carried out, also behind one that failed.
   * @returns per message `undefined`, or why the kernel refused it
   */
  batch(messages: readonly Message[]): readonly (NetlinkError | undefined)[] {
    const results = new Array<NetlinkError | undefined>(messages.length).fill(undefined);
    if (messages.length === 0) return results;
    const { writer } = this.#buffers;
    const first = this.#sequence + 1;
    writer.reset();
    // Errors are answered in any case; the answer to the last message says that all are done.
    const last = messages.at(-1);
    for (const message of messages) {
      const { type, flags = 0, body } = message;
      writer.message(type, Flag.REQUEST | (message === last ? Flag.ACK : 0) | flags, this.#next(), body);
    }
    this.#send(messages[0]);
    for (;;) {
      const size = this.#receive(messages[0]);
      const errno = this.#buffers.errnoFor(this.#sequence, size);
      if (errno === 0 || (errno !== undefined && errno === last?.harmless)) return results;
      for (const answer of this.#read(size)) {
        const i = answer.sequence - first;
        if (i < 0 || i >= messages.length || answer.type !== MessageType.ERROR) continue;
        const { errno, kernelText } = readAnswer(answer);
        const of = messages[i];
        if (errno !== 0 && errno !== of?.harmless) results[i] = new NetlinkError(of?.action() ?? "", errno, kernelText);
        if (i === messages.length - 1) return results;
      }
    }
  }

  /**
   * Sends messages for nftables as one transaction: all of them are carried out, or none. On a socket for packet filters.
   * @throws {NetlinkError} the first refusal
   */
  transact(messages: readonly Message[]): void {
    if (messages.length === 0) return;
    const { writer } = this.#buffers;
    const first = this.#next();
    writer.reset(mostTransactionBytes);
    writer.message(BatchMessage.BEGIN, Flag.REQUEST, first, batchHeader);
    const last = messages.at(-1);
    for (const message of messages) {
      const { type, flags = 0, body } = message;
      writer.message(type, Flag.REQUEST | (message === last ? Flag.ACK : 0) | flags, this.#next(), body);
    }
    writer.message(BatchMessage.END, Flag.REQUEST, this.#next(), batchHeader);
    this.#send(messages[0]);
    let refusal: NetlinkError | undefined;
    for (;;) {
      const size = this.#receive(messages[0]);
      if (refusal === undefined && this.#buffers.errnoFor(first + messages.length, size) === 0) return;
      for (const answer of this.#read(size)) {
        const i = answer.sequence - first;
        if (i < 0 || i > messages.length || answer.type !== MessageType.ERROR) continue;
        const { errno, kernelText } = readAnswer(answer);
        if (errno !== 0) refusal ??= new NetlinkError(messages[Math.max(i - 1, 0)]?.action() ?? "", errno, kernelText);
        // A transaction that is refused as a whole is answered at its beginning.
        if (i !== 0 && i !== messages.length) continue;
        if (refusal !== undefined) throw refusal;
        return;
      }
    }
  }

  /** One message. @throws {NetlinkError} */
  run(message: Message): void {
    const [refusal] = this.batch([message]);
    if (refusal !== undefined) throw refusal;
  }

  /** Asks for one object and answers its message, read by `read`. @throws {NetlinkError} */
  get<T>(message: Message, read: (answer: RawMessage) => T): T {
    const { writer } = this.#buffers;
    writer.reset();
    const sequence = this.#next();
    writer.message(message.type, Flag.REQUEST | (message.flags ?? 0), sequence, message.body);
    this.#send(message);
    for (;;) {
      for (const answer of this.#read(this.#receive(message))) {
        if (answer.sequence !== sequence) continue;
        if (answer.type !== MessageType.ERROR) return read(answer);
        const { errno, kernelText } = readAnswer(answer);
        throw new NetlinkError(message.action(), errno, kernelText);
      }
    }
  }

  /** Asks for all objects that match, `read` answering `undefined` for those to leave out. @throws {NetlinkError} */
  dump<T>(message: Message, read: (answer: RawMessage) => T | undefined): T[] {
    for (let attempt = 1; ; attempt++) {
      const found = this.#dumpOnce(message, read);
      if (found !== undefined) return found;
      if (attempt === dumpAttempts) throw new NetlinkError(message.action(), Errno.EBUSY, "the table keeps changing");
    }
  }

  /** `undefined` where changes in between made the answer inconsistent. */
  #dumpOnce<T>(message: Message, read: (answer: RawMessage) => T | undefined): T[] | undefined {
    const found: T[] = [];
    let disturbed = false;
    for (const page of this.#pages(message, read)) {
      for (const object of page.objects) found.push(object);
      disturbed ||= page.disturbed;
    }
    return disturbed ? undefined : found;
  }

  /**
   * The same for what is too much for one turn of the event loop, a datagram in each. Nobody else may use this socket
   * meanwhile. Only for what nobody but the caller changes: the kernel calls a dump of packet rules disturbed whatever
   * table has changed, and pods come and go meanwhile.
   * @throws {NetlinkError}
   */
  async dumpInTurns<T>(
    message: Message,
    read: (answer: RawMessage) => T | undefined,
    take: (objects: readonly T[]) => void,
  ): Promise<void> {
    for (const { objects } of this.#pages(message, read)) {
      take(objects);
      await nextTurn();
    }
  }

  /** What each datagram of a dump has. @throws {NetlinkError} */
  *#pages<T>(
    message: Message,
    read: (answer: RawMessage) => T | undefined,
  ): Generator<{ readonly objects: readonly T[]; readonly disturbed: boolean }> {
    const { writer } = this.#buffers;
    writer.reset();
    const sequence = this.#next();
    writer.message(message.type, Flag.REQUEST | Flag.DUMP, sequence, message.body);
    this.#send(message);
    for (;;) {
      const objects: T[] = [];
      let [disturbed, isLast] = [false, false];
      for (const answer of this.#read(this.#receive(message))) {
        if (answer.sequence !== sequence) continue;
        disturbed ||= (answer.flags & Flag.DUMP_INTR) !== 0;
        if (answer.type === MessageType.ERROR || answer.type === MessageType.DONE) {
          const { errno, kernelText } = readAnswer(answer);
          if (errno !== 0) throw new NetlinkError(message.action(), errno, kernelText);
          isLast = true;
          break;
        }
        const object = read(answer);
        if (object !== undefined) objects.push(object);
      }
      yield { objects, disturbed };
      if (isLast) return;
    }
  }

  /**
   * Sends one message from the runtime's thread pool: for what keeps the kernel busy for long. At most one
   * per socket at a time, and no other call of this socket meanwhile.
   * @throws {NetlinkError}
   */
  async post(message: Message): Promise<void> {
    const bytes = new Uint8Array(new ArrayBuffer(1024));
    const writer = new MessageWriter(bytes);
    const sequence = this.#next();
    writer.message(message.type, Flag.REQUEST | Flag.ACK | (message.flags ?? 0), sequence, message.body);
    await new Promise<void>((resolve, reject) => {
      write(this.#fd, bytes, 0, writer.length, null, (error) => (error === null ? resolve() : reject(error)));
    });
    for (;;) {
      for (const answer of this.#read(this.#receive(message))) {
        if (answer.sequence !== sequence || answer.type !== MessageType.ERROR) continue;
        const { errno, kernelText } = readAnswer(answer);
        if (errno === 0) return;
        throw new NetlinkError(message.action(), errno, kernelText);
      }
    }
  }

  /**
   * Makes the kernel process an interface's carrier change now, by querying the link state. Otherwise a bridge forwards
   * frames only after a work queue has run, which under load is after the first frames are lost.
   * @throws {NetlinkError}
   */
  settleCarrier(ifname: string): void {
    this.#ethtool(ifname, ETHTOOL_GLINK, () => `look at the carrier of "${ifname}"`);
  }

  /** Has an interface compute the checksums of what is sent by it at once; without them there is no segmentation either. */
  turnOffChecksumOffload(ifname: string): void {
    this.#ethtool(ifname, ETHTOOL_STXCSUM, () => `turn off the checksum offload of "${ifname}"`);
  }

  /**
   * Whether an interface is still as it was read: this index and hardware address under this name, and up. For one that
   * each ADD asks about: to read it whole takes several times as long.
   */
  stands({ name, index, mac }: Pick<Link, "name" | "index" | "mac">): boolean {
    const { address, union, mac: found } = this.#buffers.ifreq.name(name);
    const isAnswered = (command: number): boolean => this.#libc.calls.ioctl(this.#fd, command, address) === 0;
    if (!isAnswered(SIOCGIFINDEX) || union[0] !== index) return false;
    if (!isAnswered(SIOCGIFFLAGS) || ((union[0] ?? 0) & Iff.UP) === 0) return false;
    return isAnswered(SIOCGIFHWADDR) && found.toHex() === mac.replaceAll(":", "");
  }

  /** The index of the interface of this name; `undefined` where there is none. To read it whole takes ten times as long. */
  indexOf(name: string): number | undefined {
    const { address, union } = this.#buffers.ifreq.name(name);
    return this.#libc.calls.ioctl(this.#fd, SIOCGIFINDEX, address) === 0 ? union[0] : undefined;
  }

  /** One command with a value of 0. */
  #ethtool(ifname: string, command: number, action: Message["action"]): void {
    const { ethtool, ethtoolIfreq } = this.#buffers;
    ethtool[0] = command;
    ethtool[1] = 0;
    const { address } = ethtoolIfreq.name(ifname);
    if (this.#libc.calls.ioctl(this.#fd, SIOCETHTOOL, address) < 0)
      throw new NetlinkError(action(), this.#libc.errno());
  }

  [Symbol.dispose](): void {
    if (this.#fd < 0) return;
    this.#libc.calls.close(this.#fd);
    this.#fd = -1;
  }

  #next(): number {
    this.#sequence = (this.#sequence + 1) >>> 0;
    return this.#sequence;
  }

  #send(first: Asked | undefined): void {
    const { out, writer } = this.#buffers;
    const { bytes, length } = writer;
    if (length > sentBytes) this.#makeRoom(length);
    const address = bytes === out.bytes ? out.address : addressOf(bytes);
    const sent = this.#libc.calls.send(this.#fd, address, length, 0);
    if (bytes !== out.bytes) writer.reset();
    if (sent < 0) throw new NetlinkError(first?.action() ?? "", this.#libc.errno(), "while sending");
  }

  /** Where it is refused the kernel refuses the request. */
  #makeRoom(length: number): void {
    const room = pinned(4);
    new DataView(room.bytes.buffer).setUint32(0, length, true);
    this.#libc.calls.setsockopt(this.#fd, SOL_SOCKET, SO_SNDBUFFORCE, room.address, 4);
  }

  /** @returns how many bytes have come */
  #receive(first: Asked | undefined): number {
    const size = this.#libc.calls.recv(this.#fd, this.#buffers.in.address, receiveBytes, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0) throw new NetlinkError(first?.action() ?? "", this.#libc.errno(), "while waiting for the answer");
    if (size > receiveBytes)
      throw new MalformedMessage(`A netlink datagram has ${size} bytes, room is ${receiveBytes}`);
    if (this.#port === 0 && this.#ports !== undefined) this.#port = this.#notePort(this.#ports, size);
    return size;
  }

  #read(size: number): Iterable<RawMessage> {
    return readMessages(this.#buffers.in.bytes.subarray(0, size));
  }

  /** The kernel gives a socket its port with the first request, and says it with every answer. */
  #notePort(ports: Set<number>, size: number): number {
    const portAt = 12;
    if (size < portAt + 4) return 0;
    const port = new DataView(this.#buffers.in.bytes.buffer).getUint32(portAt, true);
    ports.add(port);
    return port;
  }
}
