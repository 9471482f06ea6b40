import {
  Family,
  Ifa,
  Iff,
  Ifla,
  InetConf,
  MessageType,
  Nda,
  Netnsa,
  Rta,
} from "../../../agent/protocols/netlink/constants.ts";
import { Errno } from "../../../agent/protocols/netlink/errno.ts";
import { Attributes, fixedHeader, type RawMessage } from "../../../agent/protocols/netlink/message-reader.ts";
import { ndmsg } from "../../../agent/protocols/netlink/neighbour.ts";
import { formatMac } from "../../../shared/net/mac.ts";
import { framed, opened, Refusal, SocketInMemory } from "./messages.ts";
import type {
  AddressInMemory,
  LinkInMemory,
  NamespaceInMemory,
  NeighbourInMemory,
  RouteInMemory,
} from "./namespace.ts";

const ipv4Options = [
  [InetConf.FORWARDING, "forwarding"],
  [InetConf.ACCEPT_REDIRECTS, "accept_redirects"],
  [InetConf.RP_FILTER, "rp_filter"],
  [InetConf.ARP_IGNORE, "arp_ignore"],
  [InetConf.ARP_NOTIFY, "arp_notify"],
] as const;
const linkHeader = 16;
const same = (a: Uint8Array | undefined, b: Uint8Array | undefined): boolean => a?.toHex() === b?.toHex();
const plain = (bytes: Uint8Array | undefined): number =>
  (bytes ?? new Uint8Array(0)).reduce((sum, byte, i) => sum + byte * 256 ** i, 0);

/** For unit tests only: rtnetlink in one namespace, as far as the data paths ask it. */
export class LinkSocketInMemory extends SocketInMemory {
  readonly #in: NamespaceInMemory;
  readonly #ofFd: (fd: number) => NamespaceInMemory;
  readonly #ofId: (id: number) => NamespaceInMemory | undefined;
  /** Interfaces whose carrier was settled or whose checksums are whole, in order. */
  readonly ethtool: string[] = [];

  readonly #works: Readonly<Record<number, (request: RawMessage) => void>> = {
    [MessageType.NEWLINK]: (request) => this.#setLink(request),
    [MessageType.SETLINK]: (request) => this.#setLink(request),
    [MessageType.DELLINK]: (request) => this.#deleteLinks(request),
    [MessageType.NEWLINKPROP]: (request) => this.#addName(request),
    [MessageType.NEWADDR]: (request) => this.#setAddress(request),
    [MessageType.DELADDR]: (request) => this.#setAddress(request),
    [MessageType.NEWROUTE]: (request) => this.#setRoute(request),
    [MessageType.DELROUTE]: (request) => this.#setRoute(request),
    [MessageType.NEWNEIGH]: (request) => this.#setNeighbour(request),
    [MessageType.DELNEIGH]: (request) => this.#setNeighbour(request),
  };

  constructor(
    namespace: NamespaceInMemory,
    ofFd: (fd: number) => NamespaceInMemory,
    ofId: (id: number) => NamespaceInMemory | undefined,
  ) {
    super();
    this.#in = namespace;
    this.#ofFd = ofFd;
    this.#ofId = ofId;
  }

  stands({ name, index, mac }: { readonly name: string; readonly index: number; readonly mac: string }): boolean {
    const link = this.#in.named(name);
    return link !== undefined && link.index === index && link.up && formatMac(link.mac) === mac;
  }

  indexOf(name: string): number | undefined {
    return this.#in.named(name)?.index;
  }

  settleCarrier(ifname: string): void {
    this.#ethtool("carrier", ifname);
  }

  turnOffChecksumOffload(ifname: string): void {
    this.#ethtool("checksums", ifname);
  }

  #ethtool(what: string, ifname: string): void {
    if (this.#in.named(ifname) === undefined) throw new Refusal(Errno.ENODEV);
    this.ethtool.push(`${what} ${ifname}`);
  }

  protected override apply(request: RawMessage): void {
    const work = this.#works[request.type];
    if (work === undefined) throw new Error(`Broken invariant: no such request as ${request.type}`);
    work(request);
  }

  protected override answer(request: RawMessage, isDump: boolean): readonly RawMessage[] {
    switch (request.type) {
      case MessageType.GETLINK:
        return this.#links(request, isDump);
      case MessageType.GETADDR: {
        const { view, of } = opened(request, 8);
        const index = view.getUint32(4, true);
        const standing = this.#elsewhere(of.i32(Ifa.TARGET_NETNSID));
        if (!standing.links.has(index) && index !== 0) throw new Refusal(Errno.ENODEV);
        return standing.addresses.filter((one) => index === 0 || one.index === index).map(addressAnswer);
      }
      case MessageType.GETROUTE: {
        const family = opened(request, 12).view.getUint8(0);
        return this.#in.routes.filter(({ header }) => header[0] === family).map(routeAnswer);
      }
      case MessageType.GETNEIGH:
        return this.#neighbours(request);
      case MessageType.GETNSID: {
        const { id } = this.#ofFd(opened(request, 4).of.u32(Netnsa.FD) ?? -1);
        return [framed(MessageType.GETNSID, (writer) => writer.u32(0).attrU32(Netnsa.NSID, id))];
      }
      default:
        throw new Error(`Broken invariant: no such question as ${request.type}`);
    }
  }

  #elsewhere(id: number | undefined): NamespaceInMemory {
    const found = id === undefined ? this.#in : this.#ofId(id);
    if (found === undefined) throw new Refusal(Errno.EINVAL);
    return found;
  }

  #links(request: RawMessage, isDump: boolean): readonly RawMessage[] {
    const { view, of } = opened(request, linkHeader);
    const { links } = this.#elsewhere(of.i32(Ifla.TARGET_NETNSID));
    if (isDump) return [...links.values()].map((link) => linkAnswer(link));
    const index = view.getInt32(4, true);
    const name = of.text(Ifla.IFNAME);
    const altName = of.text(Ifla.ALT_IFNAME);
    const found = [...links.values()].find((link) =>
      index !== 0 ? link.index === index : link.name === name || link.altNames.has(altName ?? name ?? ""),
    );
    if (found === undefined) throw new Refusal(Errno.ENODEV);
    return [linkAnswer(found)];
  }

  #setLink(request: RawMessage): void {
    const { view, of } = opened(request, linkHeader);
    const index = view.getInt32(4, true);
    if (index === 0) {
      this.#create(of);
      return;
    }
    const link = this.#link(index);
    if ((view.getUint32(12, true) & Iff.UP) !== 0) link.up = (view.getUint32(8, true) & Iff.UP) !== 0;
    const master = of.u32(Ifla.MASTER);
    if (master !== undefined && master !== link.master) {
      if (master !== 0) this.#link(master);
      this.#in.leave(link);
      link.master = master;
      link.port.set(Ifla.BRPORT_LEARNING, 1);
    }
    link.group = of.u32(Ifla.GROUP) ?? link.group;
    link.mtu = of.u32(Ifla.MTU) ?? link.mtu;
    link.mac = of.bytes(Ifla.ADDRESS)?.slice() ?? link.mac;
    link.alias = of.text(Ifla.IFALIAS) ?? link.alias;
    const ipv4 = of.nested(Ifla.AF_SPEC)?.nested(Family.INET)?.nested(Ifla.INET_CONF);
    for (const [option, name] of ipv4Options) {
      const value = ipv4?.u32(option);
      if (value !== undefined) this.#in.sysctls.set(`/proc/sys/net/ipv4/conf/${link.name}/${name}`, String(value));
    }
    const options = of.nested(Ifla.LINKINFO)?.nested(Ifla.INFO_SLAVE_DATA);
    if (options === undefined) return;
    if (link.master === 0) throw new Refusal(Errno.EINVAL);
    for (const [type, value] of options.entries()) link.port.set(type, plain(value));
  }

  #create(of: Attributes): void {
    const info = of.nested(Ifla.LINKINFO);
    const kind = info?.text(Ifla.INFO_KIND) ?? "";
    const master = of.u32(Ifla.MASTER) ?? 0;
    if (master !== 0) this.#link(master);
    const given = (from: Attributes) => ({
      name: from.text(Ifla.IFNAME) ?? "",
      kind,
      mac: (from.bytes(Ifla.ADDRESS) ?? new Uint8Array(6)).slice(),
      mtu: from.u32(Ifla.MTU) ?? 1500,
      group: from.u32(Ifla.GROUP) ?? 0,
    });
    const peer = info?.nested(Ifla.INFO_DATA)?.bytes(Ifla.VETH_INFO_PEER);
    if (peer === undefined) {
      this.#in.add(given(of));
      return;
    }
    const other = new Attributes(fixedHeader(peer, linkHeader).rest);
    const namespace = this.#ofFd(other.u32(Ifla.NET_NS_FD) ?? -1);
    if (this.#in.named(given(of).name) !== undefined) throw new Refusal(Errno.EEXIST);
    const pod = namespace.add(given(other));
    const host = this.#in.add({ ...given(of), master });
    if (master !== 0) host.port.set(Ifla.BRPORT_LEARNING, 1);
    pod.peer = { namespace: this.#in, index: host.index };
    host.peer = { namespace, index: pod.index };
  }

  #deleteLinks(request: RawMessage): void {
    const { view, of } = opened(request, linkHeader);
    const group = of.u32(Ifla.GROUP);
    if (group === undefined) {
      this.#in.remove(view.getInt32(4, true));
      return;
    }
    const all = [...this.#in.links.values()].filter((link) => link.group === group);
    if (all.length === 0) throw new Refusal(Errno.ENODEV);
    for (const { index } of all) if (this.#in.links.has(index)) this.#in.remove(index);
  }

  #addName(request: RawMessage): void {
    const { view, of } = opened(request, linkHeader);
    const name = of.nested(Ifla.PROP_LIST)?.text(Ifla.ALT_IFNAME) ?? "";
    if (this.#in.named(name) !== undefined) throw new Refusal(Errno.EEXIST);
    this.#link(view.getInt32(4, true)).altNames.add(name);
  }

  #setAddress(request: RawMessage): void {
    const { view, of } = opened(request, 8);
    const [family, prefix, index] = [view.getUint8(0), view.getUint8(1), view.getUint32(4, true)];
    const ip = (of.bytes(Ifa.LOCAL) ?? new Uint8Array(0)).slice();
    const { name } = this.#link(index);
    const isOff = this.#in.sysctls.get(`/proc/sys/net/ipv6/conf/${name}/disable_ipv6`) === "1";
    if (family === Family.INET6 && isOff) throw new Refusal(Errno.EACCES);
    const isThis = (one: AddressInMemory): boolean => one.index === index && one.prefix === prefix && same(one.ip, ip);
    const isThere = this.#in.addresses.some(isThis);
    if (request.type === MessageType.DELADDR) {
      if (!isThere) throw new Refusal(Errno.EADDRNOTAVAIL);
      this.#in.addresses = this.#in.addresses.filter((one) => !isThis(one));
      return;
    }
    if (isThere) throw new Refusal(Errno.EEXIST);
    this.#in.addresses.push({ index, family, prefix, ip });
  }

  /** A route is another one where anything of it is. One without an interface leads out by that whose network has its gateway. */
  #setRoute(request: RawMessage): void {
    const header = request.body.slice(0, 12);
    const attributes = new Map([...opened(request, 12).of.entries()].map(([type, value]) => [type, value.slice()]));
    const gateway = attributes.get(Rta.GATEWAY);
    if (!attributes.has(Rta.OIF)) {
      const way = this.#in.addresses.find(({ ip, prefix }) => gateway !== undefined && isInside(ip, prefix, gateway));
      if (way === undefined) throw new Refusal(Errno.ENETUNREACH);
      attributes.set(Rta.OIF, new Uint8Array(Uint32Array.of(way.index).buffer));
    }
    const keyOf = (route: RouteInMemory): string =>
      [
        [0, 1, 4, 5].map((i) => route.header[i]).join(),
        ...[...route.attributes]
          .filter(([type]) => [Rta.DST, Rta.GATEWAY, Rta.OIF].includes(type as never))
          .map(([type, value]) => `${type} ${value.toHex()}`)
          .toSorted(),
      ].join(" ");
    const key = keyOf({ header, attributes });
    const isThere = this.#in.routes.some((route) => keyOf(route) === key);
    if (request.type === MessageType.DELROUTE) {
      if (!isThere) throw new Refusal(Errno.ESRCH);
      this.#in.routes = this.#in.routes.filter((route) => keyOf(route) !== key);
      return;
    }
    if (isThere) throw new Refusal(Errno.EEXIST);
    this.#in.routes.push({ header, attributes });
  }

  #setNeighbour(request: RawMessage): void {
    const { view, of } = opened(request, 12);
    const [family, index] = [view.getUint8(0), view.getUint32(4, true)];
    this.#link(index);
    const dst = of.bytes(Nda.DST)?.slice();
    const mac = of.bytes(Nda.LLADDR)?.slice();
    const isThis = (one: NeighbourInMemory): boolean =>
      one.index === index &&
      one.family === family &&
      (family === Family.BRIDGE ? same(one.mac, mac) : same(one.dst, dst));
    const isThere = this.#in.neighbours.some(isThis);
    if (request.type === MessageType.DELNEIGH && !isThere) throw new Refusal(Errno.ENOENT);
    this.#in.neighbours = this.#in.neighbours.filter((one) => !isThis(one));
    if (request.type === MessageType.NEWNEIGH)
      this.#in.neighbours.push({ index, family, state: view.getUint16(8, true), dst, mac });
  }

  #neighbours(request: RawMessage): readonly RawMessage[] {
    const { view, of } = opened(request, 12);
    const isBridge = view.getUint8(0) === Family.BRIDGE;
    const bridge = of.u32(Nda.MASTER);
    if (isBridge && bridge !== undefined) this.#link(bridge);
    const index = of.u32(Nda.IFINDEX);
    return this.#in.neighbours
      .filter((one) =>
        isBridge
          ? one.family === Family.BRIDGE && this.#in.links.get(one.index)?.master === bridge
          : one.family !== Family.BRIDGE,
      )
      .filter((one) => index === undefined || one.index === index)
      .map((one) =>
        framed(MessageType.NEWNEIGH, (writer) => {
          ndmsg(writer, one.family, one.index, one.state);
          if (one.dst !== undefined) writer.attrBytes(Nda.DST, one.dst);
          if (one.mac !== undefined) writer.attrBytes(Nda.LLADDR, one.mac);
        }),
      );
  }

  #link(index: number): LinkInMemory {
    const link = this.#in.links.get(index);
    if (link === undefined) throw new Refusal(Errno.ENODEV);
    return link;
  }
}

function isInside(ip: Uint8Array, prefix: number, other: Uint8Array): boolean {
  const bits = (bytes: Uint8Array): string =>
    [...bytes]
      .map((byte) => byte.toString(2).padStart(8, "0"))
      .join("")
      .slice(0, prefix);
  return ip.length === other.length && bits(ip) === bits(other);
}

const linkAnswer = (link: LinkInMemory): RawMessage =>
  framed(MessageType.NEWLINK, (writer) => {
    writer
      .u8x4(0, 0, 1)
      .u32(link.index)
      .u32(link.up ? Iff.UP : 0)
      .u32(0);
    writer.attrText(Ifla.IFNAME, link.name).attrBytes(Ifla.ADDRESS, link.mac);
    writer.attrU32(Ifla.MTU, link.mtu).attrU32(Ifla.GROUP, link.group);
    if (link.master !== 0) writer.attrU32(Ifla.MASTER, link.master);
    if (link.alias !== "") writer.attrText(Ifla.IFALIAS, link.alias);
    if (link.peer !== undefined)
      writer.attrU32(Ifla.LINK, link.peer.index).attrU32(Ifla.LINK_NETNSID, link.peer.namespace.id);
    writer.begin(Ifla.LINKINFO);
    if (link.kind !== undefined) writer.attrText(Ifla.INFO_KIND, link.kind);
    if (link.port.size > 0) {
      writer.attrText(Ifla.INFO_SLAVE_KIND, "bridge").begin(Ifla.INFO_SLAVE_DATA);
      for (const [type, value] of link.port) writer.attrU8(type, value & 0xff);
      writer.end();
    }
    writer.end();
  });

const addressAnswer = ({ family, prefix, index, ip }: AddressInMemory): RawMessage =>
  framed(MessageType.NEWADDR, (writer) => {
    writer.u8x4(family, prefix).u32(index).attrBytes(Ifa.LOCAL, ip);
  });

const routeAnswer = ({ header, attributes }: RouteInMemory): RawMessage =>
  framed(MessageType.NEWROUTE, (writer) => {
    const view = new DataView(header.buffer, header.byteOffset);
    for (let at = 0; at < header.length; at += 4) writer.u32(view.getUint32(at, true));
    for (const [type, value] of attributes) writer.attrBytes(type, value);
  });
