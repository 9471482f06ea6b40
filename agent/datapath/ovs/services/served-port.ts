import { contains, type Family, formatIp, type Ip, sameIp } from "../../../../shared/net/ip.ts";
import type { Endpoint, ServicePort } from "../../services.ts";

/** Endpoints of one group, which is one message of at most 64 KiB, with about 100 bytes for each. */
export const maxEndpoints = 500;
/** The longest time of a learned flow, a field of 16 bits. */
const maxAffinitySeconds = 65_535;

/** A service port as the switch has it. */
export interface ServedPort extends Pick<ServicePort, "key" | "protocol" | "affinitySeconds"> {
  /** Which no other service port has at the same time. */
  readonly places: readonly Place[];
  /** Whether anybody answers, here or elsewhere. */
  readonly hasEndpoints: boolean;
}

/** Where a service port is met, and who answers there. Lists that say the same are one object. */
export interface Place {
  /** Absent: the node's own addresses. */
  readonly ip?: Ip;
  readonly port: number;
  /** Whom pods and the node itself reach. */
  readonly inside: readonly Endpoint[];
  /** Whom others reach. */
  readonly outside: readonly Endpoint[];
  /** Who may come; absent: anybody. */
  readonly ranges?: NonNullable<ServicePort["sourceRanges"]>;
}

/** The change of a service port; `undefined` stands for a missing state. */
export interface ServiceChange {
  readonly key: string;
  /** As it is wanted, or was. */
  readonly given: ServicePort;
  readonly before: ServedPort | undefined;
  readonly after: ServedPort | undefined;
}

/** Connections of datagrams to forget: to what was asked for, and answered by the endpoint. */
export interface StaleConnections {
  readonly family: Family;
  /** Absent: the node's own addresses. */
  readonly ip?: Ip;
  readonly port: number;
  /** Absent: nobody has answered. */
  readonly endpoint?: Pick<Endpoint, "ip" | "port">;
}

export const familyOf = ({ places: [clusterIp] }: Pick<ServedPort, "places">): Family => clusterIp?.ip?.family ?? 4;

const nameOf = ({ ip, port }: Pick<Endpoint, "ip" | "port">): string => `${formatIp(ip)} ${port}`;

/** Unique among the places of one protocol. */
export const placeName = ({ ip, port }: Pick<Place, "ip" | "port">): string =>
  `${ip === undefined ? "node" : formatIp(ip)} ${port}`;

/**
 * The places of a service port, with endpoints of its own family, each once, at most as many as a group takes, and
 * sorted, so that another order is no change.
 * @param all `false`: the cluster IP alone
 */
export function servedPort(given: ServicePort, all: boolean): ServedPort {
  const { key, protocol, affinitySeconds } = given;
  const lists: (readonly Endpoint[])[] = [];
  const once = (endpoints: readonly Endpoint[]): readonly Endpoint[] => {
    const list = inOrder(endpoints, given.clusterIp.family).slice(0, maxEndpoints);
    const known = lists.find((other) => isSameList(list, other));
    if (known === undefined) lists.push(list);
    return known ?? list;
  };
  const internal = once(given.internal);
  const others = all ? { outside: once(given.external), inside: once(given.cluster) } : undefined;
  return {
    key,
    protocol,
    ...(affinitySeconds === undefined ? {} : { affinitySeconds: Math.min(affinitySeconds, maxAffinitySeconds) }),
    places: [
      { ip: given.clusterIp, port: given.port, inside: internal, outside: internal },
      ...(others === undefined ? [] : placesBeyond(given).map((place) => ({ ...place, ...others }))),
    ],
    hasEndpoints: given.internal.length > 0 || given.cluster.length > 0,
  };
}

function placesBeyond(given: ServicePort): Pick<Place, "ip" | "port" | "ranges">[] {
  const { port, nodePort, externalIps, ingressIps, sourceRanges: ranges } = given;
  const own = (ip: Ip): boolean => sameIp(ip, given.clusterIp);
  const ingress = new Map(ingressIps.filter((ip) => !own(ip)).map((ip) => [formatIp(ip), ip]));
  // An address that is both is as closed as the load balancer's.
  const external = new Map(
    externalIps.filter((ip) => !own(ip) && !ingress.has(formatIp(ip))).map((ip) => [formatIp(ip), ip]),
  );
  return [
    ...[...ingress.values()].map((ip) => ({ ip, port, ...(ranges === undefined ? {} : { ranges }) })),
    ...[...external.values()].map((ip) => ({ ip, port })),
    ...(nodePort === undefined ? [] : [{ port: nodePort }]),
  ];
}

function inOrder(endpoints: readonly Endpoint[], family: Family): readonly Endpoint[] {
  const own = endpoints.filter(({ ip }) => ip.family === family);
  const once = new Map(own.map((endpoint) => [nameOf(endpoint), endpoint]));
  return [...once.values()].sort((a, b) => Number(a.ip.value - b.ip.value) || a.port - b.port);
}

/** What the switch does not do of it, in a sentence; `undefined`: nothing is missing. */
export function shortcomingOf({ internal, external, cluster, affinitySeconds = 0 }: ServicePort): string | undefined {
  const most = Math.max(internal.length, external.length, cluster.length);
  if (most > maxEndpoints) return `it has ${most} endpoints, of which ${maxEndpoints} are used`;
  if (affinitySeconds > maxAffinitySeconds)
    return `clients keep their endpoint for ${maxAffinitySeconds} s in place of ${affinitySeconds}`;
  return undefined;
}

/** Whether the flows would be the same. */
export const isSame = (a: ServedPort, b: ServedPort): boolean =>
  a.protocol === b.protocol &&
  a.affinitySeconds === b.affinitySeconds &&
  a.hasEndpoints === b.hasEndpoints &&
  a.places.length === b.places.length &&
  a.places.every((place, i) => isSamePlace(place, b.places[i]));

const isSamePlace = (place: Place, other: Place | undefined): boolean =>
  other !== undefined &&
  placeName(place) === placeName(other) &&
  isSameList(place.inside, other.inside) &&
  isSameList(place.outside, other.outside) &&
  Bun.deepEquals(place.ranges, other.ranges);

const isSameList = (a: readonly Endpoint[], b: readonly Endpoint[]): boolean =>
  a === b || (a.length === b.length && a.every((endpoint, i) => isSameEndpoint(endpoint, b[i])));

const isSameEndpoint = ({ ip, port, weight }: Endpoint, other: Endpoint | undefined): boolean =>
  other !== undefined && sameIp(ip, other.ip) && port === other.port && weight === other.weight;

/** Endpoints that the service port has, wherever it is met; of each list once. */
export const listsOf = (served: ServedPort): readonly (readonly Endpoint[])[] => [
  ...new Set(served.places.flatMap(({ inside, outside }) => [inside, outside])),
];

/** The places that `one` has and `other` has not. */
export function placesOnlyIn(one: ServedPort | undefined, other: ServedPort | undefined): readonly string[] {
  const names = (served: ServedPort | undefined): string[] =>
    (served?.places ?? []).map((place) => `${served?.protocol} ${placeName(place)}`);
  const others = new Set(names(other));
  return names(one).filter((name) => !others.has(name));
}

/** The largest number of flows and groups that are added or removed. */
export const sizeOf = ({ before, after }: ServiceChange): number =>
  [before, after].reduce((sum, served) => sum + (served === undefined ? 0 : ownSize(served)), 0);

const ownSize = (served: ServedPort): number =>
  listsOf(served).reduce((sum, list) => sum + 1 + list.length, 0) +
  served.places.reduce((sum, { ranges = [] }) => sum + 2 + ranges.length, 0);

/**
 * Only of datagrams, which may go on from one port for ever; streams are ended by their peers. A client that was
 * refused before there was an endpoint has a connection too, without one.
 */
export function staleConnections({ before, after }: ServiceChange): StaleConnections[] {
  if (before === undefined || before.protocol !== "udp") return [];
  return before.places.flatMap(({ ip, port, inside, outside }) => {
    const place = { family: familyOf(before), ...(ip === undefined ? {} : { ip }), port };
    const left =
      after?.protocol !== "udp" ? undefined : after.places.find((one) => placeName(one) === placeName(place));
    const stay = new Set([...(left?.inside ?? []), ...(left?.outside ?? [])].map(nameOf));
    const gone = new Map([...inside, ...outside].map((endpoint) => [nameOf(endpoint), endpoint]));
    for (const name of stay) gone.delete(name);
    const hasBegun = !before.hasEndpoints && after?.hasEndpoints === true;
    return hasBegun ? [place] : [...gone.values()].map((endpoint) => ({ ...place, endpoint }));
  });
}

/** Whether any of the ranges holds one of the addresses. */
export const holdsAny = (ranges: NonNullable<Place["ranges"]>, ips: readonly Ip[]): boolean =>
  ranges.some((range) => ips.some((ip) => ip.family === range.ip.family && contains(range, ip)));
