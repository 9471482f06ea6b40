import { type Family, type Ip, ipOf, sameIp } from "../../../../shared/net/ip.ts";
import { type Element, elementOf, ipBytes, joined } from "../../../protocols/netlink/mod.ts";
import { addressesIn } from "../../policy-ranges.ts";
import type { Endpoint, ServicePort } from "../../services.ts";
import { type Choice, choiceName, ownListFrom } from "./choice.ts";
import { type Entrances, type ServiceSets, sides } from "./service-sets.ts";
import { arrange, arrangeKept, slotCounts } from "./slots.ts";

/** What stands in the slots of a service's lists: each endpoint as the bytes of its address and port in hexadecimal. */
export interface Slots {
  readonly internal: readonly string[];
  readonly cluster: readonly string[];
  /** The same array where nobody else is in it. */
  readonly external: readonly string[];
}

const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;

export const mark = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);
const portBytes = (port: number): Uint8Array => Uint8Array.of(port >> 8, port & 0xff);

/** An address or a port of the node at which a service is. */
export interface Entrance {
  readonly ip?: Ip;
  readonly port: number;
  readonly isClusterIp: boolean;
}

/** The cluster IP first. @param isWhole not only that */
export function entrancesOf(service: ServicePort, isWhole: boolean): readonly Entrance[] {
  const { clusterIp, externalIps, ingressIps, port, nodePort } = service;
  const others = isWhole ? [...externalIps, ...ingressIps] : [];
  const ips = others.filter((ip, i) => !sameIp(ip, clusterIp) && others.findIndex((other) => sameIp(other, ip)) === i);
  return [
    { ip: clusterIp, port, isClusterIp: true },
    ...ips.map((ip) => ({ ip, port, isClusterIp: false })),
    ...(isWhole && nodePort !== undefined ? [{ port: nodePort, isClusterIp: false }] : []),
  ];
}

/** What packets know an entrance by. */
const entranceKey = ({ protocol }: ServicePort, { ip, port }: Entrance): readonly Uint8Array[] => [
  ...(ip === undefined ? [] : [ipBytes(ip)]),
  Uint8Array.of(protocolNumbers[protocol]),
  portBytes(port),
];

/** The address and port of one endpoint, as the kernel has them. */
const endpointHex = ({ ip, port }: Endpoint): string => joined([ipBytes(ip), portBytes(port)]).toHex();

function slotsWanted(endpoints: readonly Endpoint[]): readonly string[] {
  const counts = slotCounts(endpoints);
  return endpoints.flatMap((endpoint, i) => Array.from({ length: counts[i] ?? 1 }, () => endpointHex(endpoint)));
}

/**
 * Where the service's endpoints go.
 * @param before where they are now
 */
export function slotsOf(service: ServicePort, isWhole: boolean, before: Slots): Slots {
  const place = service.affinitySeconds === undefined ? arrange : arrangeKept;
  const internal = place(before.internal, slotsWanted(service.internal));
  if (entrancesOf(service, isWhole).length === 1) return { internal, cluster: [], external: [] };
  const [inside, outside] = [slotsWanted(service.cluster), slotsWanted(service.external)];
  const cluster = place(before.cluster, inside);
  const isSame = inside.length === outside.length && inside.toSorted().join() === outside.toSorted().join();
  return { internal, cluster, external: isSame ? cluster : place(before.external, outside) };
}

/** What stands in a service's slots by what the kernel tells. @param found by an entrance's key and the first slot of a list */
export function slotsFound(
  service: ServicePort,
  isWhole: boolean,
  sets: Readonly<Record<Family, ServiceSets>>,
  found: ReadonlyMap<string, readonly string[]>,
): Slots {
  const own = sets[service.clusterIp.family];
  const [first, other] = entrancesOf(service, isWhole);
  const at = (entrance: Entrance | undefined, from: number): readonly string[] | undefined => {
    if (entrance === undefined) return undefined;
    const { endpoints } = entrance.ip === undefined ? own.byNodePort : own.byAddress;
    return found.get(slotsName(endpoints.name, joined(entranceKey(service, entrance)), from));
  };
  const cluster = at(other, 0) ?? [];
  return { internal: at(first, 0) ?? [], cluster, external: at(other, ownListFrom) ?? cluster };
}

export const slotsName = (map: string, entrance: Uint8Array, from: number): string =>
  `${map} ${entrance.toHex()} ${from}`;

/** An element that puts a service in force. */
export interface ServiceElement extends Element {
  /** Of an entrance: what its chain does. */
  readonly leads?: { readonly entrances: Entrances; readonly choice: Choice };
}

/** All elements that put a service in force. */
export function elementsOf(
  service: ServicePort,
  slots: Slots,
  sets: Readonly<Record<Family, ServiceSets>>,
  isWhole: boolean,
): readonly ServiceElement[] {
  const own = sets[service.clusterIp.family];
  const isAnywhere = [service.internal, service.cluster, service.external].some((list) => list.length > 0);
  const affinitySeconds = service.affinitySeconds ?? 0;
  const entrances = entrancesOf(service, isWhole).flatMap((entrance): readonly ServiceElement[] => {
    const { ip, isClusterIp } = entrance;
    const key = entranceKey(service, entrance);
    const entrances = ip === undefined ? own.byNodePort : own.byAddress;
    const inside = isClusterIp ? slots.internal : slots.cluster;
    const outside = isClusterIp ? slots.internal : slots.external;
    const isOwnList = outside !== inside;
    const choices: Readonly<Record<(typeof sides)[number], Choice>> = {
      inside: { slots: inside.length, isOwnList: false, isHidden: false, affinitySeconds },
      outside: { slots: outside.length, isOwnList, isHidden: isClusterIp || !service.keepsClient, affinitySeconds },
    };
    const slotsFrom = (list: readonly string[], from: number): readonly Element[] =>
      list.map((hex, slot) => ({
        ...elementOf(entrances.endpoints, ...key, mark(from + slot)),
        value: Uint8Array.fromHex(hex),
      }));
    return [
      ...slotsFrom(inside, 0),
      ...(isOwnList ? slotsFrom(outside, ownListFrom) : []),
      ...sides
        .filter((side) => isWhole || side === "inside")
        .map((side) => {
          const choice = choices[side].slots > 0 ? choices[side] : nobody(isAnywhere);
          const chain = choiceName(entrances, choice);
          return { ...elementOf(entrances.sides[side], ...key), chain, leads: { entrances, choice } };
        }),
    ];
  });
  return [...entrances, ...(isWhole ? boundsOf(service, own) : [])];
}

/** Where a policy alone leaves nobody, the client is not told. */
const nobody = (isElsewhere: boolean): Choice => ({
  slots: 0,
  isOwnList: false,
  isHidden: isElsewhere,
  affinitySeconds: 0,
});

/** Who may come to the load balancer's addresses. */
function boundsOf(service: ServicePort, { bounded, sources }: ServiceSets): readonly Element[] {
  const { ingressIps, sourceRanges, port } = service;
  if (sourceRanges === undefined) return [];
  const blocks = sourceRanges.map((cidr) => ({ t: "block" as const, cidr, except: [] }));
  return ingressIps.flatMap((ip) => {
    const key = entranceKey(service, { ip, port, isClusterIp: false });
    const sourceOf = (value: bigint): Element => elementOf(sources, ...key, ipBytes(ipOf(ip.family, value)));
    return [
      elementOf(bounded, ...key),
      ...addressesIn(blocks, ip.family).map(({ first, last }) => ({ ...sourceOf(first), last: sourceOf(last).key })),
    ];
  });
}
