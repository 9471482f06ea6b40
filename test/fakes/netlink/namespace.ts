import { Family } from "../../../agent/protocols/netlink/constants.ts";
import { Errno } from "../../../agent/protocols/netlink/errno.ts";
import { Refusal } from "./messages.ts";

export interface LinkInMemory {
  readonly index: number;
  name: string;
  kind?: string;
  up: boolean;
  mac: Uint8Array;
  mtu: number;
  group: number;
  master: number;
  alias: string;
  readonly altNames: Set<string>;
  peer?: { readonly namespace: NamespaceInMemory; readonly index: number };
  /** Options of a bridge's port, by the numbers of IFLA_BRPORT_*. */
  readonly port: Map<number, number>;
}

export interface AddressInMemory {
  readonly index: number;
  readonly family: number;
  readonly prefix: number;
  readonly ip: Uint8Array;
}

export interface RouteInMemory {
  readonly header: Uint8Array;
  readonly attributes: ReadonlyMap<number, Uint8Array>;
}

export interface NeighbourInMemory {
  readonly index: number;
  readonly family: number;
  readonly state: number;
  readonly dst: Uint8Array | undefined;
  readonly mac: Uint8Array | undefined;
}

/** What every interface has of its own in /proc/sys/net, and how it begins. */
const ofEach = [
  ["ipv4/conf/*/accept_redirects", "1"],
  ["ipv4/conf/*/arp_announce", "0"],
  ["ipv4/conf/*/arp_ignore", "0"],
  ["ipv4/conf/*/forwarding", "1"],
  ["ipv6/conf/*/accept_dad", "1"],
  ["ipv6/conf/*/accept_ra", "1"],
  ["ipv6/conf/*/accept_redirects", "1"],
  ["ipv6/conf/*/disable_ipv6", "0"],
  ["ipv6/conf/*/ndisc_notify", "0"],
] as const;

/** One network namespace: a loopback, and what it is given. */
export class NamespaceInMemory {
  readonly links = new Map<number, LinkInMemory>();
  addresses: AddressInMemory[] = [];
  routes: RouteInMemory[] = [];
  neighbours: NeighbourInMemory[] = [];
  /** Files of /proc/sys, by their paths. */
  readonly sysctls = new Map([
    ["/proc/sys/net/ipv4/ip_forward", "0"],
    ["/proc/sys/net/ipv6/conf/all/forwarding", "0"],
  ]);
  #next = 1;

  readonly id: number;
  constructor(id: number) {
    this.id = id;
    this.add({ name: "lo" });
  }

  add(link: Partial<LinkInMemory> & { readonly name: string }): LinkInMemory {
    if (this.named(link.name) !== undefined) throw new Refusal(Errno.EEXIST);
    const added: LinkInMemory = {
      up: false,
      mac: Uint8Array.of(2, 0, 0, 0, this.id, this.#next),
      mtu: 1500,
      group: 0,
      master: 0,
      alias: "",
      altNames: new Set(),
      port: new Map(),
      ...link,
      index: this.#next++,
    };
    this.links.set(added.index, added);
    for (const [name, value] of ofEach) this.sysctls.set(`/proc/sys/net/${name.replace("*", link.name)}`, value);
    return added;
  }

  named(name: string): LinkInMemory | undefined {
    return [...this.links.values()].find((link) => link.name === name || link.altNames.has(name));
  }

  /** With its other end, and with all that hangs on either. */
  remove(index: number): void {
    const link = this.links.get(index);
    if (link === undefined) throw new Refusal(Errno.ENODEV);
    this.links.delete(index);
    this.addresses = this.addresses.filter((address) => address.index !== index);
    this.neighbours = this.neighbours.filter((neighbour) => neighbour.index !== index);
    for (const port of this.links.values()) if (port.master === index) this.leave(port);
    if (link.peer?.namespace.links.has(link.peer.index)) link.peer.namespace.remove(link.peer.index);
  }

  /** What a bridge knows of a port goes with it. */
  leave(link: LinkInMemory): void {
    link.master = 0;
    link.port.clear();
    this.neighbours = this.neighbours.filter(({ index, family }) => index !== link.index || family !== Family.BRIDGE);
  }
}
