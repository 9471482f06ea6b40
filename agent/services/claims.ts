import { formatIp, type Ip } from "../../shared/net/ip.ts";
import type { ServicePort } from "../datapath/services.ts";
import type { Decided, ServiceProblem } from "./decide.ts";

interface Claimant {
  /** `namespace/name`. */
  readonly service: string;
  /** The least of a place has it. */
  readonly rank: string;
}

/**
 * Who has an address with its port, a node port, or a health-check node port that several services say they have: the
 * one whose cluster IP it is, else the oldest, by name among those of one second. All nodes decide so by themselves,
 * and in whatever order they hear of services. (With kube-proxy it is a matter of chance, on each node.)
 */
export class Claims {
  /** By place, in the order of their ranks. */
  readonly #claimants = new Map<string, readonly Claimant[]>();
  /** By service. */
  readonly #places = new Map<string, ReadonlyMap<string, string>>();

  /**
   * Replaces what a service has claimed; nothing decided: it is gone.
   * @returns services that have gained or lost by it, or lose to another now
   */
  set(service: string, created: string, decided: Decided): ReadonlySet<string> {
    const [before, after] = [this.#places.get(service) ?? new Map(), placesOf(service, created, decided)];
    const concerned = new Set<string>();
    for (const place of new Set([...before.keys(), ...after.keys()])) {
      const rank = after.get(place);
      if (rank === before.get(place)) continue;
      const old = this.#claimants.get(place) ?? [];
      const others = old.filter((claimant) => claimant.service !== service);
      const now = rank === undefined ? others : [...others, { service, rank }].sort(byRank);
      if (now.length === 0) this.#claimants.delete(place);
      else this.#claimants.set(place, now);
      if (old[0]?.rank !== now[0]?.rank) for (const other of others) concerned.add(other.service);
    }
    if (after.size === 0) this.#places.delete(service);
    else this.#places.set(service, after);
    return concerned;
  }

  /** What is left to a service of what it says; the same object where that is all. */
  leftOf(service: string, decided: Decided): Decided {
    const problems: ServiceProblem[] = [];
    const hasAt = (place: string, reason: ServiceProblem["reason"], what: string, key?: string): boolean => {
      const [holder] = this.#claimants.get(place) ?? [];
      if (holder === undefined || holder.service === service) return true;
      const message = `${what} is left to service "${holder.service}", ${whyIt(holder)}`;
      problems.push({ reason, message, ...(key === undefined ? {} : { key }) });
      return false;
    };
    const { healthCheck, ...rest } = decided;
    const ports = decided.ports.flatMap((port) => portLeft(port, hasAt));
    const checks =
      healthCheck !== undefined &&
      hasAt(nodePlace("tcp", healthCheck.port), "PortConflict", `health-check node port ${healthCheck.port}`);
    if (problems.length === 0) return decided;
    return {
      ...rest,
      ports: checks ? ports : ports.map(({ healthCheckNodePort: _, ...port }) => port),
      problems: [...decided.problems, ...problems],
      ...(checks ? { healthCheck } : {}),
    };
  }
}

type HasAt = (place: string, reason: ServiceProblem["reason"], what: string, key?: string) => boolean;

/** Nothing without its cluster IP. */
function portLeft(port: ServicePort, hasAt: HasAt): ServicePort[] {
  const { key, protocol, clusterIp, nodePort, externalIps, ingressIps } = port;
  const has = (ip: Ip): boolean =>
    hasAt(addressPlace(port, ip), "AddressConflict", `${formatIp(ip)} port ${port.port}/${protocol}`, key);
  if (!has(clusterIp)) return [];
  const [external, ingress] = [externalIps.filter(has), ingressIps.filter(has)];
  const hasNodePort =
    nodePort === undefined ||
    hasAt(nodePlace(protocol, nodePort), "PortConflict", `node port ${nodePort}/${protocol}`, key);
  if (hasNodePort && external.length === externalIps.length && ingress.length === ingressIps.length) return [port];
  const { nodePort: _, ...rest } = port;
  return [{ ...(hasNodePort ? port : rest), externalIps: external, ingressIps: ingress }];
}

const byRank = (a: Claimant, b: Claimant): number => (a.rank < b.rank ? -1 : 1);

const [ofClusterIp, ofOthers] = ["0", "1"] as const;
const whyIt = ({ rank }: Claimant): string =>
  rank.startsWith(ofClusterIp) ? "whose cluster IP it is" : "which has it too and is older";

const addressPlace = ({ protocol, port }: ServicePort, { family, value }: Ip): string =>
  `${protocol} ${family} ${value} ${port}`;
/** One port for both families, as the API server gives them. */
const nodePlace = (protocol: ServicePort["protocol"], port: number): string => `${protocol} ${port}`;

/** Each with the service's rank there. */
function placesOf(service: string, created: string, { ports, healthCheck }: Decided): ReadonlyMap<string, string> {
  const rank = `${ofOthers} ${created} ${service}`;
  const places = new Map<string, string>();
  if (healthCheck !== undefined) places.set(nodePlace("tcp", healthCheck.port), rank);
  for (const port of ports) {
    for (const ip of [...port.externalIps, ...port.ingressIps]) places.set(addressPlace(port, ip), rank);
    if (port.nodePort !== undefined) places.set(nodePlace(port.protocol, port.nodePort), rank);
  }
  for (const port of ports) places.set(addressPlace(port, port.clusterIp), `${ofClusterIp} ${created} ${service}`);
  return places;
}
