import { formatMac } from "../../../shared/net/mac.ts";
import { EXT_FILTER_SKIP_STATS, Family, Flag, Iff, Ifla, InetConf, MessageType } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message, MessageWriter } from "./message-writer.ts";

/** An interface as the kernel tells it. */
export interface Link {
  readonly index: number;
  readonly name: string;
  readonly up: boolean;
  /** `veth`, `bridge`, …; absent for hardware. */
  readonly kind?: string;
  readonly mac: string;
  readonly mtu: number;
  readonly group: number;
  /** Index of the interface that it is a part of, such as a bridge; 0 when of none. */
  readonly master: number;
  readonly isBridgePort: boolean;
  readonly alias: string;
  /** Index of the other end of a veth, in the namespace that `peerNamespaceId` names; absent id: this namespace. */
  readonly peerIndex?: number;
  readonly peerNamespaceId?: number;
  /** Frames may leave by the port that they came from. */
  readonly hairpin: boolean;
  /** Its bridge learns MACs from it. */
  readonly learning: boolean;
}

export const ifinfo = (writer: MessageWriter, index: number, flags = 0, change = 0): MessageWriter =>
  writer.u32x4(Family.UNSPEC, index, flags, change);

/** How to find a link: by its index, its name, or a second name that it carries. */
export type LinkKey = { readonly index: number } | { readonly name: string } | { readonly altName: string };

/** @param namespaceId of the namespace that it is in, as a link names its other end's; absent: the socket's */
export function getLink(key: LinkKey, namespaceId?: number): Message {
  return {
    action: () => "look up an interface",
    type: MessageType.GETLINK,
    body: (writer) => {
      ifinfo(writer, "index" in key ? key.index : 0).attrU32(Ifla.EXT_MASK, EXT_FILTER_SKIP_STATS);
      if ("name" in key) writer.attrText(Ifla.IFNAME, key.name);
      if ("altName" in key) writer.attrText(Ifla.ALT_IFNAME, key.altName);
      if (namespaceId !== undefined) writer.attrU32(Ifla.TARGET_NETNSID, namespaceId);
    },
  };
}

export function listLinks(): Message {
  return {
    action: () => "list the interfaces",
    type: MessageType.GETLINK,
    body: (writer) => ifinfo(writer, 0).attrU32(Ifla.EXT_MASK, EXT_FILTER_SKIP_STATS),
  };
}

/** Reads RTM_NEWLINK. @throws {MalformedMessage} */
export function readLink(message: RawMessage): Link {
  const { view, rest } = fixedHeader(message.body, 16);
  const attributes = new Attributes(rest);
  const info = attributes.nested(Ifla.LINKINFO);
  const kind = info?.text(Ifla.INFO_KIND);
  const peerIndex = attributes.u32(Ifla.LINK);
  const peerNamespaceId = attributes.i32(Ifla.LINK_NETNSID);
  const isBridgePort = info?.text(Ifla.INFO_SLAVE_KIND) === "bridge";
  const port = isBridgePort ? info?.nested(Ifla.INFO_SLAVE_DATA) : undefined;
  return {
    index: view.getInt32(4, true),
    name: attributes.text(Ifla.IFNAME) ?? "",
    up: (view.getUint32(8, true) & Iff.UP) !== 0,
    mac: formatMac(attributes.bytes(Ifla.ADDRESS) ?? new Uint8Array(0)),
    mtu: attributes.u32(Ifla.MTU) ?? 0,
    group: attributes.u32(Ifla.GROUP) ?? 0,
    master: attributes.u32(Ifla.MASTER) ?? 0,
    alias: attributes.text(Ifla.IFALIAS) ?? "",
    isBridgePort,
    hairpin: port?.u8(Ifla.BRPORT_MODE) === 1,
    learning: port?.u8(Ifla.BRPORT_LEARNING) === 1,
    ...(kind === undefined ? {} : { kind }),
    ...(peerIndex === undefined ? {} : { peerIndex }),
    ...(peerNamespaceId === undefined ? {} : { peerNamespaceId }),
  };
}

export interface VethPair {
  readonly host: { readonly name: string; readonly mac: Uint8Array; readonly master: number; readonly group: number };
  readonly pod: { readonly name: string; readonly mac: Uint8Array; readonly namespaceFd: number };
  readonly mtu: number;
}

/**
 * A veth pair: the host's end in its bridge, the other one made in its namespace under its final name, both
 * down. One queue each: more cost a wait of the kernel and a veth gains nothing by them.
 */
export function createVeth(pair: VethPair): Message {
  const { host, pod, mtu } = pair;
  const common = (writer: MessageWriter, name: string, mac: Uint8Array): MessageWriter =>
    writer
      .attrText(Ifla.IFNAME, name)
      .attrU32(Ifla.MTU, mtu)
      .attrBytes(Ifla.ADDRESS, mac)
      .attrU32(Ifla.NUM_TX_QUEUES, 1)
      .attrU32(Ifla.NUM_RX_QUEUES, 1);
  return {
    action: () => `create the interface pair "${host.name}" and "${pod.name}"`,
    type: MessageType.NEWLINK,
    flags: Flag.CREATE | Flag.EXCL,
    body: (writer) => {
      ifinfo(writer, 0);
      common(writer, host.name, host.mac).attrU32(Ifla.MASTER, host.master).attrU32(Ifla.GROUP, host.group);
      writer.begin(Ifla.LINKINFO).attrName(Ifla.INFO_KIND, "veth").begin(Ifla.INFO_DATA).begin(Ifla.VETH_INFO_PEER);
      common(ifinfo(writer, 0), pod.name, pod.mac).attrU32(Ifla.NET_NS_FD, pod.namespaceFd);
      writer.end().end().end();
    },
  };
}

/** A bridge, down, with a MAC of its own: one without takes that of a port, and changes it when the port leaves. */
export function createBridge(bridge: { name: string; mac: Uint8Array; mtu: number }): Message {
  return {
    action: () => `create the bridge "${bridge.name}"`,
    type: MessageType.NEWLINK,
    flags: Flag.CREATE | Flag.EXCL,
    body: (writer) => {
      ifinfo(writer, 0)
        .attrText(Ifla.IFNAME, bridge.name)
        .attrBytes(Ifla.ADDRESS, bridge.mac)
        .attrU32(Ifla.MTU, bridge.mtu)
        .begin(Ifla.LINKINFO)
        .attrText(Ifla.INFO_KIND, "bridge")
        .end();
    },
  };
}

/** A device of the kernel's WireGuard, down and without keys. EOPNOTSUPP: the kernel has none. */
export function createWireGuard(name: string, mtu: number): Message {
  return {
    action: () => `create the WireGuard device "${name}"`,
    type: MessageType.NEWLINK,
    flags: Flag.CREATE | Flag.EXCL,
    body: (writer) => {
      ifinfo(writer, 0)
        .attrText(Ifla.IFNAME, name)
        .attrU32(Ifla.MTU, mtu)
        .begin(Ifla.LINKINFO)
        .attrText(Ifla.INFO_KIND, "wireguard")
        .end();
    },
  };
}

export interface LinkChange {
  readonly up?: boolean;
  /** 0: leave the bridge. */
  readonly master?: number;
  readonly group?: number;
  readonly mtu?: number;
  readonly mac?: Uint8Array;
  readonly alias?: string;
}

/** Changes what is given and leaves the rest. `what` names the interface in errors. */
export function setLink(what: string, index: number, change: LinkChange): Message {
  return {
    action: () => `change the interface "${what}"`,
    type: MessageType.SETLINK,
    body: (writer) => {
      ifinfo(writer, index, change.up === true ? Iff.UP : 0, change.up === undefined ? 0 : Iff.UP);
      if (change.master !== undefined) writer.attrU32(Ifla.MASTER, change.master);
      if (change.group !== undefined) writer.attrU32(Ifla.GROUP, change.group);
      if (change.mtu !== undefined) writer.attrU32(Ifla.MTU, change.mtu);
      if (change.mac !== undefined) writer.attrBytes(Ifla.ADDRESS, change.mac);
      if (change.alias !== undefined) writer.attrText(Ifla.IFALIAS, change.alias);
    },
  };
}

/** Gives a link a second name, at most 127 bytes, unique in its namespace; links are found by it. */
export function addAltName(what: string, index: number, altName: string): Message {
  return {
    action: () => `name the interface "${what}" also "${altName}"`,
    type: MessageType.NEWLINKPROP,
    flags: Flag.CREATE | Flag.EXCL,
    body: (writer) => {
      ifinfo(writer, index).begin(Ifla.PROP_LIST).attrText(Ifla.ALT_IFNAME, altName).end();
    },
  };
}

/** Ways in which an interface deals with IPv4, by the kernel's names. */
export interface Ipv4Options {
  /** Send gratuitous ARP when it comes up or its MAC is set. */
  readonly arpNotify?: true;
  /** Whether to accept ICMP redirects. */
  readonly acceptRedirects?: false;
  /** Answer no ARP, forward nothing, and accept only senders that are reached by it (strict rp_filter). */
  readonly hearsNobody?: true;
  /** Answer ARP for addresses of its own only (true), or for all of the node's. */
  readonly answersForOwnAlone?: boolean;
}

export function setIpv4Options(what: string, index: number, options: Ipv4Options): Message {
  return {
    action: () => `set the IPv4 options of "${what}"`,
    type: MessageType.NEWLINK,
    body: (writer) => {
      ifinfo(writer, index).begin(Ifla.AF_SPEC).begin(Family.INET).begin(Ifla.INET_CONF);
      if (options.arpNotify !== undefined) writer.attrU32(InetConf.ARP_NOTIFY, 1);
      if (options.acceptRedirects !== undefined) writer.attrU32(InetConf.ACCEPT_REDIRECTS, 0);
      if (options.answersForOwnAlone !== undefined)
        writer.attrU32(InetConf.ARP_IGNORE, options.answersForOwnAlone ? 1 : 0);
      if (options.hearsNobody !== undefined)
        writer.attrU32(InetConf.ARP_IGNORE, 8).attrU32(InetConf.FORWARDING, 0).attrU32(InetConf.RP_FILTER, 1);
      writer.end().end().end();
    },
  };
}

export function deleteLink(what: string, index: number): Message {
  return {
    action: () => `delete the interface "${what}"`,
    type: MessageType.DELLINK,
    body: (writer) => ifinfo(writer, index),
  };
}

/** Deletes every link of a group in one go. ENODEV: there is none. */
export function deleteLinksOfGroup(group: number): Message {
  return {
    action: () => `delete the interfaces of group ${group}`,
    type: MessageType.DELLINK,
    body: (writer) => ifinfo(writer, 0).attrU32(Ifla.GROUP, group),
  };
}
