import type { Family } from "../../../../shared/net/ip.ts";
import type { PacketSet, Table } from "../../../protocols/netlink/mod.ts";

/** In a table of its own, by which an agent with other bridges is left alone. */
export const serviceTable = (bridge: string): Table => ({ family: "inet", name: `pipette-services-${bridge}` });

/** Where a connection comes from: a pod of this node or the node itself, or anywhere else. */
export const sides = ["inside", "outside"] as const;
export type Side = (typeof sides)[number];

/** What packets find services by: an address and port, or a port of the node. */
export interface Entrances {
  readonly family: Family;
  readonly by: "address" | "nodePort";
  /** By whoever comes, to the chain that chooses an endpoint: most services share a few. */
  readonly sides: Readonly<Record<Side, PacketSet>>;
  /** From an entrance and the number of a slot to an endpoint. */
  readonly endpoints: PacketSet;
  /** From an entrance and a client to its slot, where clients keep theirs: filled by packets. */
  readonly clients: PacketSet;
}

/** The sets of one family. */
export interface ServiceSets {
  readonly family: Family;
  readonly byAddress: Entrances;
  readonly byNodePort: Entrances;
  /** Where not everybody may come, and who may. */
  readonly bounded: PacketSet;
  readonly sources: PacketSet;
  /** Pairs of equal addresses: filled by packets, since nftables cannot compare two fields of one. */
  readonly hairpins: PacketSet;
}

/** Clients of services with affinity, over the time that they are remembered: some 10 MB. Others are served too. */
const maxClients = 65_536;
/** Pods that reached a service in the last minute. */
const maxHairpins = 65_536;

function entrancesOf(table: Table, family: Family, by: Entrances["by"]): Entrances {
  const ip = `ipv${family}` as const;
  const key = by === "address" ? ([ip, "protocol", "port"] as const) : (["protocol", "port"] as const);
  const nameOf = (what: string): string => (by === "address" ? `${what}${family}` : `${what}${family}-ports`);
  const side = (name: Side): PacketSet => ({ table, name: nameOf(name), key, leadsToChains: true });
  return {
    family,
    by,
    sides: { inside: side("inside"), outside: side("outside") },
    endpoints: { table, name: nameOf("endpoints"), key: [...key, "mark"], value: [ip, "port"] },
    clients: { table, name: nameOf("clients"), key: [...key, ip], value: ["mark"], mostFromPackets: maxClients },
  };
}

export function serviceSets(table: Table, family: Family): ServiceSets {
  const ip = `ipv${family}` as const;
  return {
    family,
    byAddress: entrancesOf(table, family, "address"),
    byNodePort: entrancesOf(table, family, "nodePort"),
    bounded: { table, name: `bounded${family}`, key: [ip, "protocol", "port"] },
    sources: { table, name: `sources${family}`, key: [ip, "protocol", "port", ip], hasRanges: true },
    hairpins: { table, name: `hairpins${family}`, key: [ip, ip], mostFromPackets: maxHairpins },
  };
}

export const allSets = (sets: ServiceSets): readonly PacketSet[] => [
  ...filledSets(sets),
  sets.byAddress.clients,
  sets.byNodePort.clients,
  sets.hairpins,
];

/** Those whose elements are what services say. */
export const filledSets = ({ byAddress, byNodePort, bounded, sources }: ServiceSets): readonly PacketSet[] => [
  ...[byAddress, byNodePort].flatMap(({ sides: { inside, outside }, endpoints }) => [inside, outside, endpoints]),
  bounded,
  sources,
];
