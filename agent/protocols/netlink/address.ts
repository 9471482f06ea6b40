import { type Cidr, formatCidr, type Ip, lastOf } from "../../../shared/net/ip.ts";
import { cidrOf, ipFromBytes } from "./bytes.ts";
import { Family, Flag, Ifa, MessageType } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message } from "./message-writer.ts";

/** An address on an interface. */
export interface LinkAddress {
  readonly index: number;
  readonly address: Cidr;
  /** Usable: not being probed, and not lost to a duplicate (IPv6). */
  readonly ready: boolean;
}

const familyOf = (ip: Ip): number => (ip.family === 4 ? Family.INET : Family.INET6);

/** Adds an address that is usable at once: IPv6 is not probed for duplicates, the allocator has seen to that. */
export function addAddress(what: string, index: number, address: Cidr): Message {
  return {
    action: () => `add the address "${formatCidr(address)}" to "${what}"`,
    type: MessageType.NEWADDR,
    flags: Flag.CREATE | Flag.EXCL,
    body: (writer) => {
      const { ip, prefix } = address;
      writer
        .u8x4(familyOf(ip), prefix, ip.family === 6 ? Ifa.F_NODAD : 0)
        .u32(index)
        .attrIp(Ifa.LOCAL, ip)
        .attrIp(Ifa.ADDRESS, ip);
      // Programs that broadcast look for it on the interface; a block of two addresses has none (RFC 3021).
      if (ip.family === 4 && prefix < 31) writer.attrIp(Ifa.BROADCAST, lastOf(address));
    },
  };
}

/** Takes an address away, and with it the route to its network. EADDRNOTAVAIL: it is not there. */
export function removeAddress(what: string, index: number, { ip, prefix }: Cidr): Message {
  return {
    action: () => `remove the address "${formatCidr({ ip, prefix })}" from "${what}"`,
    type: MessageType.DELADDR,
    body: (writer) => writer.u8x4(familyOf(ip), prefix).u32(index).attrIp(Ifa.LOCAL, ip),
  };
}

/**
 * The addresses of one interface, or with 0 of all; the answer holds others too where the kernel does not filter.
 * @param namespaceId of the namespace that the interface is in, as a link names its other end's; absent: the socket's
 */
export function listAddresses(index: number, namespaceId?: number): Message {
  return {
    action: () => "list the addresses of an interface",
    type: MessageType.GETADDR,
    body: (writer) => {
      writer.u8x4(Family.UNSPEC).u32(index);
      if (namespaceId !== undefined) writer.attrU32(Ifa.TARGET_NETNSID, namespaceId);
    },
  };
}

/** Reads RTM_NEWADDR; `undefined` for families other than IP. @throws {MalformedMessage} */
export function readAddress(message: RawMessage): LinkAddress | undefined {
  const { view, rest } = fixedHeader(message.body, 8);
  const attributes = new Attributes(rest);
  const ip = ipFromBytes(attributes.bytes(Ifa.LOCAL) ?? attributes.bytes(Ifa.ADDRESS) ?? new Uint8Array(0));
  if (ip === undefined) return undefined;
  const flags = attributes.u32(Ifa.FLAGS) ?? view.getUint8(2);
  return {
    index: view.getUint32(4, true),
    address: cidrOf(ip, view.getUint8(1)),
    ready: (flags & (Ifa.F_TENTATIVE | Ifa.F_DADFAILED)) === 0,
  };
}
