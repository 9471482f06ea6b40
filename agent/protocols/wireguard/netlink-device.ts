import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Cidr, Ip } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  Attributes,
  Errno,
  fixedHeader,
  ipBytes,
  ipFromBytes,
  isErrno,
  type Message,
  type MessageWriter,
  type NetlinkSocket,
  type RawMessage,
  readAttributes,
} from "../netlink/mod.ts";
import type { DeviceChange, DeviceState, Endpoint, PeerChange, PeerState, WireGuardDevice } from "./device.ts";

/** Generic netlink (linux/genetlink.h): the family that knows all others, and its command. */
const controlFamily = 0x10;
const getFamily = 3;
const FamilyAttribute = { id: 1, name: 2 } as const;
/** linux/wireguard.h */
const familyName = "wireguard";
const familyVersion = 1;
const Command = { get: 0, set: 1 } as const;
const Device = { name: 2, privateKey: 3, publicKey: 4, listenPort: 6, peers: 8 } as const;
const Peer = {
  publicKey: 1,
  flags: 3,
  endpoint: 4,
  keepalive: 5,
  handshake: 6,
  received: 7,
  sent: 8,
  allowed: 9,
} as const;
const PeerFlag = { remove: 1, replaceAllowed: 2 } as const;
const Allowed = { family: 1, ip: 2, prefix: 3 } as const;
const AF_INET = 2;
const AF_INET6 = 10;
const keyBytes = 32;

const header = (writer: MessageWriter, command: number, version: number): MessageWriter =>
  writer.u8x4(command, version);

/** The number of the family by which the kernel's module is asked; `undefined` where there is no such module. @throws {NetlinkError} */
export function wireGuardFamily(socket: NetlinkSocket): number | undefined {
  const asked: Message = {
    action: () => "look for WireGuard in the kernel",
    type: controlFamily,
    body: (writer) => header(writer, getFamily, familyVersion).attrText(FamilyAttribute.name, familyName),
  };
  try {
    return socket.get(asked, ({ body }) => new Attributes(fixedHeader(body, 4).rest).u16(FamilyAttribute.id));
  } catch (caught) {
    if (isErrno(caught, Errno.ENOENT)) return undefined;
    throw caught;
  }
}

/**
 * The messages that change a device: its own part first, then each peer by itself, since one message cannot hold a
 * thousand.
 */
export function changeMessages(
  family: number,
  name: string,
  { privateKey, listenPort, peers = [] }: DeviceChange,
): Message[] {
  const set = (body: (writer: MessageWriter) => void): Message => ({
    action: () => `change the WireGuard device "${name}"`,
    type: family,
    body: (writer) => body(header(writer, Command.set, familyVersion).attrText(Device.name, name)),
  });
  const own = (writer: MessageWriter): void => {
    if (privateKey !== undefined) writer.attrBytes(Device.privateKey, privateKey);
    if (listenPort !== undefined) writer.attrU16(Device.listenPort, listenPort);
  };
  return [
    ...(privateKey === undefined && listenPort === undefined ? [] : [set(own)]),
    ...peers.map((peer) =>
      set((writer) => {
        writer.begin(Device.peers).begin(0);
        writePeer(writer, peer);
        writer.end().end();
      }),
    ),
  ];
}

function writePeer(
  writer: MessageWriter,
  { publicKey, remove, endpoint, allowed, keepaliveSeconds }: PeerChange,
): void {
  writer.attrBytes(Peer.publicKey, Uint8Array.from(Buffer.from(publicKey, "base64")));
  if (remove) return void writer.attrU32(Peer.flags, PeerFlag.remove);
  if (allowed !== undefined) writer.attrU32(Peer.flags, PeerFlag.replaceAllowed);
  if (endpoint !== undefined) writer.attrBytes(Peer.endpoint, socketAddress(endpoint));
  if (keepaliveSeconds !== undefined) writer.attrU16(Peer.keepalive, keepaliveSeconds);
  if (allowed === undefined) return;
  writer.begin(Peer.allowed);
  for (const { ip, prefix } of allowed) {
    writer.begin(0).attrU16(Allowed.family, ip.family === 4 ? AF_INET : AF_INET6);
    writer.attrIp(Allowed.ip, ip).attrU8(Allowed.prefix, prefix).end();
  }
  writer.end();
}

/** struct sockaddr_in, or sockaddr_in6. */
function socketAddress({ ip, port }: Endpoint): Uint8Array {
  const bytes = new Uint8Array(ip.family === 4 ? 16 : 28);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, ip.family === 4 ? AF_INET : AF_INET6, true);
  view.setUint16(2, port);
  bytes.set(ipBytes(ip), ip.family === 4 ? 4 : 8);
  return bytes;
}

function readSocketAddress(bytes: Uint8Array): Endpoint | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 16) return undefined;
  const at = view.getUint16(0, true) === AF_INET ? bytes.subarray(4, 8) : bytes.subarray(8, 24);
  const ip = readIp(at);
  return ip === undefined ? undefined : { ip, port: view.getUint16(2) };
}

const readIp = (bytes: Uint8Array): Ip | undefined =>
  bytes.length === 4 || bytes.length === 16 ? ipFromBytes(bytes) : undefined;

export const askForDevice = (family: number, name: string): Message => ({
  action: () => `look at the WireGuard device "${name}"`,
  type: family,
  body: (writer) => void header(writer, Command.get, familyVersion).attrText(Device.name, name),
});

/** One message of the answer, which is cut where there are many peers; the next begins with the last one's again. */
export function readDevicePart({ body }: Pick<RawMessage, "body">): DeviceState {
  const device = new Attributes(fixedHeader(body, 4).rest);
  const key = device.bytes(Device.publicKey);
  const peers = device.bytes(Device.peers);
  return {
    ...(key === undefined || key.length !== keyBytes ? {} : { publicKey: Buffer.from(key).toString("base64") }),
    listenPort: device.u16(Device.listenPort) ?? 0,
    peers: peers === undefined ? [] : [...readAttributes(peers)].flatMap(([, value]) => readPeer(value) ?? []),
  };
}

function readPeer(bytes: Uint8Array): PeerState | undefined {
  const peer = new Attributes(bytes);
  const key = peer.bytes(Peer.publicKey);
  if (key === undefined || key.length !== keyBytes) return undefined;
  const endpoint = readSocketAddress(peer.bytes(Peer.endpoint) ?? new Uint8Array(0));
  return {
    publicKey: Buffer.from(key).toString("base64"),
    ...(endpoint === undefined ? {} : { endpoint }),
    allowed: [...readAttributes(peer.bytes(Peer.allowed) ?? new Uint8Array(0))].flatMap(
      ([, one]) => readBlock(one) ?? [],
    ),
    keepaliveSeconds: peer.u16(Peer.keepalive) ?? 0,
    handshakeAt: long(peer.bytes(Peer.handshake)),
    receivedBytes: long(peer.bytes(Peer.received)),
    sentBytes: long(peer.bytes(Peer.sent)),
  };
}

function readBlock(bytes: Uint8Array): Cidr | undefined {
  const block = new Attributes(bytes);
  const ip = readIp(block.bytes(Allowed.ip) ?? new Uint8Array(0));
  return ip === undefined ? undefined : { ip, prefix: block.u8(Allowed.prefix) ?? 0 };
}

/** The first eight bytes; of a time these are the seconds. */
function long(bytes: Uint8Array | undefined): number {
  if (bytes === undefined || bytes.length < 8) return 0;
  return Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
}

/** Joins the messages of one answer. */
export function joinParts(parts: readonly DeviceState[]): DeviceState {
  const peers = new Map<string, PeerState>();
  for (const peer of parts.flatMap((part) => part.peers)) {
    const before = peers.get(peer.publicKey);
    peers.set(
      peer.publicKey,
      before === undefined ? peer : { ...before, allowed: [...before.allowed, ...peer.allowed] },
    );
  }
  const [first] = parts;
  return {
    ...(first?.publicKey === undefined ? {} : { publicKey: first.publicKey }),
    listenPort: first?.listenPort ?? 0,
    peers: [...peers.values()],
  };
}

/** A device of the kernel's module. */
export class KernelDevice implements WireGuardDevice {
  readonly #socket: NetlinkSocket;
  readonly #family: number;
  readonly #name: string;

  /** Takes over the socket. */
  constructor(socket: NetlinkSocket, family: number, name: string) {
    this.#socket = socket;
    this.#family = family;
    this.#name = name;
  }

  async read(): Promise<DeviceState> {
    return this.#attempt(() => joinParts(this.#socket.dump(askForDevice(this.#family, this.#name), readDevicePart)));
  }

  async change(change: DeviceChange): Promise<void> {
    this.#attempt(() => {
      // One at a time: the buffer of a socket holds some hundred peers.
      for (const message of changeMessages(this.#family, this.#name, change)) this.#socket.run(message);
    });
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }

  #attempt<T>(work: () => T): T {
    try {
      return work();
    } catch (cause) {
      const is = reasonOf(cause);
      throw new CniError(CniCode.interfaceFailure, `Cannot set up WireGuard: ${is}`, { cause });
    }
  }
}
