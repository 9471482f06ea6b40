import type { Family } from "../../../../shared/net/ip.ts";
import type { PacketSet, Table } from "../../../protocols/netlink/mod.ts";

/** In a table of its own, by which an agent with other bridges is left alone. */
export const serviceTable = (bridge: string): Table => ({ family: "inet", name: `pipette-services-${bridge}` });

/** Where a connection comes from: a pod of this node or the node itself, or anywhere else. */
export const sides = ["inside", "outside"] as const;
export type Side = (typeof sides)[number];

/** What packets find a service by: its address and port, or a port of the node. */
export interface Entrances {
  readonly family: Family;
  readonly side: Side;
  readonly by: "address" | "nodePort";
  /** From these to the list of endpoints, how many slots that has, and how one of them is chosen. */
  readonly map: PacketSet;
  /** From the last two to the chain that does it: most services share a few. */
  readonly choices: PacketSet;
}

/** The sets of one family. */
export interface ServiceSets {
  readonly entrances: readonly Entrances[];
  /** From a list's slots to endpoints. A list is known by the service's cluster IP and port, and a number. */
  readonly endpoints: PacketSet;
  /** Endpoints of lists with session affinity. */
  readonly members: PacketSet;
  /** Which endpoints clients have of these: filled by packets. */
  readonly clients: PacketSet;
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

function entrancesOf(table: Table, family: Family, side: Side, by: Entrances["by"]): Entrances {
  const ip = `ipv${family}` as const;
  const name = by === "address" ? `${side}${family}` : `${side}${family}-ports`;
  return {
    family,
    side,
    by,
    map: {
      table,
      name,
      key: by === "address" ? [ip, "protocol", "port"] : ["protocol", "port"],
      value: [ip, "port", "mark", "mark", "mark"],
    },
    choices: { table, name: `${name}-choices`, key: ["mark", "mark"], leadsToChains: true },
  };
}

export function serviceSets(table: Table, family: Family): ServiceSets {
  const ip = `ipv${family}` as const;
  const list = [ip, "port", "mark"] as const;
  return {
    entrances: sides.flatMap((side) => [
      entrancesOf(table, family, side, "address"),
      entrancesOf(table, family, side, "nodePort"),
    ]),
    endpoints: { table, name: `endpoints${family}`, key: [...list, "mark"], value: [ip, "port"] },
    members: { table, name: `members${family}`, key: [...list, ip, "port"] },
    clients: {
      table,
      name: `clients${family}`,
      key: [...list, ip],
      value: [ip, "port"],
      mostFromPackets: maxClients,
    },
    bounded: { table, name: `bounded${family}`, key: [ip, "protocol", "port"] },
    sources: { table, name: `sources${family}`, key: [ip, "protocol", "port", ip], hasRanges: true },
    hairpins: { table, name: `hairpins${family}`, key: [ip, ip], mostFromPackets: maxHairpins },
  };
}

export const allSets = (sets: ServiceSets): readonly PacketSet[] => [
  ...filledSets(sets),
  ...sets.entrances.map(({ choices }) => choices),
  sets.clients,
  sets.hairpins,
];

/** Those whose elements are what services say. */
export const filledSets = ({ entrances, endpoints, members, bounded, sources }: ServiceSets): readonly PacketSet[] => [
  ...entrances.map(({ map }) => map),
  endpoints,
  members,
  bounded,
  sources,
];
