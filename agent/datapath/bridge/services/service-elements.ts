import { type Family, type Ip, ipOf, sameIp } from "../../../../shared/net/ip.ts";
import { type Element, elementOf, ipBytes, joined } from "../../../protocols/netlink/mod.ts";
import type { Endpoint, ServicePort } from "../../services.ts";
import { addressesIn } from "../policies/ranges.ts";
import type { ServiceSets, Side } from "./service-sets.ts";
import { arrange, slotCounts } from "./slots.ts";

/** How one of a list's endpoints is chosen. */
export interface Choice {
  /** 0: nobody answers. */
  readonly slots: number;
  /** The client is hidden behind the node; of nobody: it is not even told. */
  readonly isHidden: boolean;
  /** A client keeps its endpoint; 0: it does not. */
  readonly affinitySeconds: number;
}

/** The endpoints of a service's lists, by slots, each as the bytes of its address and port in hexadecimal. */
export type Slots = ReadonlyMap<number, readonly string[]>;

/** Numbers of the lists: what two have in common is one list. */
const listNames = ["internal", "cluster", "external"] as const;

const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;

const mark = (value: number): Uint8Array => new Uint8Array(Uint32Array.of(value).buffer);
const portBytes = (port: number): Uint8Array => Uint8Array.of(port >> 8, port & 0xff);
export const mannerOf = ({ isHidden, affinitySeconds }: Choice): number => affinitySeconds * 2 + (isHidden ? 1 : 0);
export const choiceKey = (choice: Choice): readonly [Uint8Array, Uint8Array] => [
  mark(choice.slots),
  mark(mannerOf(choice)),
];

/** The address and port of one endpoint, as the kernel has them. */
export const endpointHex = ({ ip, port }: Pick<Endpoint, "ip" | "port">): string =>
  joined([ipBytes(ip), portBytes(port)]).toHex();

interface Lists {
  /** By the lists' numbers, with repetitions for weights; empty ones are none. */
  readonly lists: ReadonlyMap<number, readonly string[]>;
  /** Which list each of the service's is. */
  readonly numbers: ReadonlyMap<(typeof listNames)[number], number>;
}

/** @param isWhole also what others than pods need */
function listsOf(service: ServicePort, isWhole: boolean): Lists {
  const lists = new Map<number, readonly string[]>();
  const numbers = new Map<(typeof listNames)[number], number>();
  for (const [number, name] of listNames.entries()) {
    if ((number > 0 && !isWhole) || service[name].length === 0) continue;
    const before = listNames.find((other) => numbers.has(other) && service[other] === service[name]);
    const list = before === undefined ? slotsWanted(service[name]) : [];
    const same = before ?? [...numbers.keys()].find((other) => isSame(lists.get(numbers.get(other) ?? -1) ?? [], list));
    if (same === undefined) lists.set(number, list);
    numbers.set(name, same === undefined ? number : (numbers.get(same) ?? number));
  }
  return { lists, numbers };
}

function slotsWanted(endpoints: readonly Endpoint[]): readonly string[] {
  const counts = slotCounts(endpoints);
  return endpoints.flatMap((endpoint, i) => Array.from({ length: counts[i] ?? 1 }, () => endpointHex(endpoint)));
}

const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.toSorted().join() === other.toSorted().join();

/** Where the service's endpoints go. @param before where those of a list are, by the list's number */
export function slotsOf(
  service: ServicePort,
  isWhole: boolean,
  before: (list: number) => readonly (string | undefined)[],
): Slots {
  const { lists } = listsOf(service, isWhole);
  return new Map([...lists].map(([number, list]) => [number, arrange(before(number), list)]));
}

/** The number by which a service's list is known, together with its cluster IP and port. */
const listMark = (protocol: number, list: number): Uint8Array => mark(protocol | (list << 8));

export const listKey = ({ clusterIp, port, protocol }: ServicePort, list: number): readonly Uint8Array[] => [
  ipBytes(clusterIp),
  portBytes(port),
  listMark(protocolNumbers[protocol], list),
];

/** An address or a port of the node at which a service is. */
interface Entrance {
  readonly ip?: Ip;
  readonly port: number;
  readonly isClusterIp: boolean;
}

/** @param isWhole not only cluster IPs */
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

/** All elements that put a service in force, those of its entrances last. */
export function elementsOf(
  service: ServicePort,
  slots: Slots,
  sets: Readonly<Record<Family, ServiceSets>>,
  isWhole: boolean,
): readonly Element[] {
  const { protocol, affinitySeconds, clusterIp } = service;
  const own = sets[clusterIp.family];
  const number = Uint8Array.of(protocolNumbers[protocol]);
  const lists = [...slots].flatMap(([list, endpoints]) => {
    const key = listKey(service, list);
    return [
      ...endpoints.map((hex, slot) => ({
        ...elementOf(own.endpoints, ...key, mark(slot)),
        value: Uint8Array.fromHex(hex),
      })),
      ...(affinitySeconds === undefined ? [] : [...new Set(endpoints)]).map((hex) =>
        elementOf(own.members, ...key, Uint8Array.fromHex(hex)),
      ),
    ];
  });
  const { numbers } = listsOf(service, isWhole);
  const entrances = entrancesOf(service, isWhole).flatMap(({ ip, port, isClusterIp }) =>
    own.entrances
      .filter(({ by, side }) => by === (ip === undefined ? "nodePort" : "address") && (isWhole || side === "inside"))
      .map(({ map, side }) => ({
        ...elementOf(map, ...(ip === undefined ? [] : [ipBytes(ip)]), number, portBytes(port)),
        value: leadFrom(service, slots, side, isClusterIp, numbers),
      })),
  );
  return [...lists, ...(isWhole ? boundsOf(service, own, number) : []), ...entrances];
}

/** Which list leads on from an entrance, and how. */
function leadFrom(
  service: ServicePort,
  slots: Slots,
  side: Side,
  isClusterIp: boolean,
  numbers: Lists["numbers"],
): Uint8Array {
  const name = isClusterIp ? "internal" : side === "inside" ? "cluster" : "external";
  const list = numbers.get(name);
  const isAnywhere = listNames.some((each) => service[each].length > 0);
  const choice: Choice =
    list === undefined
      ? { slots: 0, isHidden: isAnywhere, affinitySeconds: 0 }
      : {
          slots: slots.get(list)?.length ?? 0,
          isHidden: side === "outside" && (isClusterIp || !service.keepsClient),
          affinitySeconds: service.affinitySeconds ?? 0,
        };
  return joined([...listKey(service, list ?? 0), ...choiceKey(choice)]);
}

/** Who may come to the load balancer's addresses. */
function boundsOf(
  { ingressIps, sourceRanges, port }: ServicePort,
  { bounded, sources }: ServiceSets,
  protocol: Uint8Array,
): readonly Element[] {
  if (sourceRanges === undefined) return [];
  return ingressIps.flatMap((ip) => {
    const key = [ipBytes(ip), protocol, portBytes(port)];
    const ranges = addressesIn(
      sourceRanges.map((cidr) => ({ t: "block", cidr, except: [] })),
      ip.family,
    );
    const sourceOf = (value: bigint): Element => elementOf(sources, ...key, ipBytes(ipOf(ip.family, value)));
    return [
      elementOf(bounded, ...key),
      ...ranges.map(({ first, last }) => ({ ...sourceOf(first), last: sourceOf(last).key })),
    ];
  });
}

/** How an entrance's value says that one is chosen. */
export function readChoice(value: Uint8Array): Choice {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const manner = view.getUint32(value.length - 4, true);
  return {
    slots: view.getUint32(value.length - 8, true),
    isHidden: manner % 2 === 1,
    affinitySeconds: Math.floor(manner / 2),
  };
}
