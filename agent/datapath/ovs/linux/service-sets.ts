import { type Cidr, formatIp } from "../../../../shared/net/ip.ts";
import {
  type Element,
  Errno,
  elementOf,
  ipBytes,
  isErrno,
  type NetlinkSocket,
  type PacketSet,
} from "../../../protocols/netlink/mod.ts";
import type { SwitchedServices } from "../../linux/packet-chains.ts";
import { packetTable } from "../../linux/packet-rules.ts";
import { lackingElements, putElements, standingElements, takeElements } from "../../linux/set-elements.ts";
import type { ServiceWay, ServiceWays } from "../overlay-node.ts";
import { virtualAddress, virtualNodePort } from "../pipeline/mod.ts";

/** What the packet rules have to know of services on this bridge. */
export const switchedServices = (bridge: string, nodePortAddresses: readonly Cidr[]): SwitchedServices => ({
  bridge,
  virtual: { 4: virtualNodePort(4), 6: virtualNodePort(6) },
  nextHop: { 4: virtualAddress(4), 6: virtualAddress(6) },
  nodePortAddresses,
});

const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;

/**
 * Node ports, and where nobody is to answer, as elements of the sets that the node's packet rules look into. These are
 * installed by others, and lose all elements with their table.
 */
export class ServiceSets {
  readonly #socket: NetlinkSocket;
  readonly #nodePorts: Readonly<Record<4 | 6, PacketSet>>;
  readonly #refused: Readonly<Record<4 | 6, PacketSet>>;
  /** Absent until the services are known: then those of an earlier agent stay. */
  #wanted: ReadonlyMap<string, Element> | undefined;

  /** @param socket for packet filters @param bridge of the packet rules' table */
  constructor(socket: NetlinkSocket, bridge: string) {
    this.#socket = socket;
    const table = { family: "inet", name: packetTable({ bridge }) } as const;
    const nodePorts = (family: 4 | 6): PacketSet => ({ table, name: `node-ports${family}`, key: ["protocol", "port"] });
    const refused = (family: 4 | 6): PacketSet => ({
      table,
      name: `refused${family}`,
      key: [`ipv${family}`, "protocol", "port"],
    });
    this.#nodePorts = { 4: nodePorts(4), 6: nodePorts(6) };
    this.#refused = { 4: refused(4), 6: refused(6) };
  }

  /** Puts exactly these in force, soon where the rules are not there yet. @throws {NetlinkError} */
  set({ nodePorts, refused }: Pick<ServiceWays, "nodePorts" | "refused">): void {
    const before = this.#wanted;
    const wanted = new Map([
      ...nodePorts.map((way) => [`node ${textOf(way)}`, this.#nodePort(way)] as const),
      ...refused.map((way) => [`refused ${textOf(way)}`, this.#nobody(way)] as const),
    ]);
    this.#wanted = wanted;
    try {
      if (before === undefined) this.install();
      else {
        putElements(this.#socket, onlyIn(wanted, before));
        takeElements(this.#socket, onlyIn(before, wanted));
      }
    } catch (caught) {
      // Without the table they come with its rules.
      if (isErrno(caught, Errno.ENOENT)) return;
      this.#wanted = undefined;
      throw caught;
    }
  }

  /** To be called once the sets have been made, or made again. @throws {NetlinkError} */
  install(): void {
    if (this.#wanted === undefined) return;
    const sets = [...Object.values(this.#nodePorts), ...Object.values(this.#refused)];
    const wanted = new Set([...this.#wanted.values()].map(nameOf));
    putElements(this.#socket, [...this.#wanted.values()]);
    takeElements(
      this.#socket,
      standingElements(this.#socket, sets).filter((element) => !wanted.has(nameOf(element))),
    );
  }

  /** What is not as it should be, in sentences. @throws {NetlinkError} */
  missing(): readonly string[] {
    const lacking = lackingElements(this.#socket, [...(this.#wanted?.values() ?? [])]).length;
    return lacking === 0 ? [] : [`the packet rules about pods lack ${lacking} ports of services`];
  }

  #nodePort({ family, protocol, port }: Omit<ServiceWay, "ip">): Element {
    return elementOf(this.#nodePorts[family], Uint8Array.of(protocolNumbers[protocol]), portBytes(port));
  }

  #nobody({ family, protocol, ip = virtualNodePort(family), port }: ServiceWay): Element {
    const parts = [ipBytes(ip), Uint8Array.of(protocolNumbers[protocol]), portBytes(port)];
    return elementOf(this.#refused[family], ...parts);
  }
}

const onlyIn = (one: ReadonlyMap<string, Element>, other: ReadonlyMap<string, Element>): Element[] =>
  [...one].filter(([name]) => !other.has(name)).map(([, element]) => element);

const portBytes = (port: number): Uint8Array => Uint8Array.of(port >> 8, port & 0xff);

const nameOf = ({ set, key }: Element): string => `${set.name} ${key.toHex()}`;

const textOf = ({ family, protocol, ip, port }: ServiceWay): string =>
  `${family} ${protocol} ${ip === undefined ? "" : formatIp(ip)} ${port}`;
