import { type Family, type Ip, sameIp } from "../../shared/net/ip.ts";
import type { Endpoint, ServicePort } from "../datapath/services.ts";
import type { EndpointSlice, SliceEndpoint } from "./endpoint-slice.ts";
import type { Service, ServicePortSpec } from "./service-object.ts";

/** Of this node: hints speak of it. */
export interface ThisNode {
  /** Absent: it is in none, or that is not known. */
  readonly zone?: string;
}

/** All are alike: Kubernetes has no weights. */
const weight = 100;
/** Ports times endpoints of one service. Clusters of 5000 nodes have services with as many endpoints. */
const maxServers = 100_000;

/** What follows from one service and its slices for this node. */
export interface Decided {
  readonly ports: readonly ServicePort[];
  /** Why there are none, or not all. */
  readonly problems: readonly ServiceProblem[];
  /** Where load balancers ask whether this node has endpoints of it. */
  readonly healthCheck?: HealthCheck;
}

/** What of a service is not as it says. */
export interface ServiceProblem {
  /** Of the port that is concerned; absent: of no single one. */
  readonly key?: string;
  /** As Kubernetes is told. */
  readonly reason: "NotUnderstood" | "AddressConflict" | "PortConflict";
  readonly message: string;
}

export interface HealthCheck {
  /** Of the node. */
  readonly port: number;
  /** How many pods of this node are ready: one that terminates gets no new connection from outside. */
  readonly localEndpoints: number;
}

/**
 * What this node has to do for each port of a service, in each of its families. The rules are those that all modes of
 * kube-proxy share (docs/services.md has the tables).
 */
export function decide(service: Service, slices: readonly EndpointSlice[], node: ThisNode): Decided {
  const servers = service.ports.length * slices.reduce((sum, { endpoints }) => sum + endpoints.length, 0);
  if (servers > maxServers) {
    const message = `it has ${servers} endpoints and ports, wanted ${maxServers} at the most`;
    return { ports: [], problems: [{ reason: "NotUnderstood", message }] };
  }
  const hasBoth = service.clusterIps.length > 1;
  const ports = service.clusterIps.flatMap((clusterIp) => {
    const { family } = clusterIp;
    const ofFamily = slices.filter((slice) => slice.family === family);
    const common = commonOf(service, family);
    return service.ports.map((spec): ServicePort => {
      const { protocol, port, nodePort } = spec;
      return {
        key: keyOf(service, spec, hasBoth && family === 6),
        ...{ protocol, port, clusterIp, ...(nodePort === undefined ? {} : { nodePort }) },
        ...common,
        ...whoAnswers(service, serversOf(ofFamily, spec), node),
      };
    });
  });
  const { healthCheckNodePort: healthPort, problems } = service;
  return {
    ports,
    problems: problems.map((at) => ({ reason: "NotUnderstood", message: `"${at}" is not understood, and left out` })),
    ...(healthPort === undefined ? {} : { healthCheck: { port: healthPort, localEndpoints: readyHere(slices) } }),
  };
}

const readyHere = (slices: readonly EndpointSlice[]): number =>
  new Set(
    slices.flatMap(({ endpoints }) =>
      endpoints
        .filter(({ isLocal, state }) => isLocal && state === "ready")
        .map(({ ip }) => `${ip.family} ${ip.value}`),
    ),
  ).size;

function keyOf({ namespace, name }: Service, port: ServicePortSpec, isSecond: boolean): string {
  return `${namespace}/${name}${port.name === "" ? "" : `:${port.name}`}${isSecond ? "/6" : ""}`;
}

/** What all ports of a service have in one family. */
function commonOf(service: Service, family: Family) {
  const { clusterIps, externalIps, ingressIps, sourceRanges, affinitySeconds, healthCheckNodePort } = service;
  return {
    // Each address once, where most is asked of whoever comes: the load balancer's have ranges.
    externalIps: externalIps.filter((ip) => ip.family === family && !has(clusterIps, ip) && !has(ingressIps, ip)),
    ingressIps: ingressIps.filter((ip) => ip.family === family && !has(clusterIps, ip)),
    // Ranges of the other family alone let nobody of this one in.
    ...(sourceRanges === undefined ? {} : { sourceRanges: sourceRanges.filter(({ ip }) => ip.family === family) }),
    ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
    keepsClient: service.externalLocal,
    ...(healthCheckNodePort === undefined ? {} : { healthCheckNodePort }),
    preservesDestination: service.preservesDestination,
  };
}

const has = (ips: readonly Ip[], ip: Ip): boolean => ips.some((other) => sameIp(other, ip));

interface Server extends SliceEndpoint {
  readonly port: number;
}

/**
 * Who serves a port, each place once, in an order of its own. A pod that moves from one slice to another is for a while
 * in both: then what says more counts.
 */
function serversOf(slices: readonly EndpointSlice[], { name, protocol }: ServicePortSpec): readonly Server[] {
  const found = new Map<string, Server>();
  for (const { ports, endpoints } of slices)
    for (const { port } of ports.filter((each) => each.name === name && each.protocol === protocol))
      for (const endpoint of endpoints) {
        const place = `${endpoint.ip.value} ${port}`;
        const other = found.get(place);
        found.set(place, other === undefined ? { ...endpoint, port } : both(other, { ...endpoint, port }));
      }
  return [...found.values()].sort((a, b) => compare(a.ip.value, b.ip.value) || a.port - b.port);
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** The same whichever comes first. */
function both(one: Server, other: Server): Server {
  const [first, second] = rank(one) <= rank(other) ? [one, other] : [other, one];
  return first.isLocal === second.isLocal ? first : { ...first, isLocal: true };
}

const rank = ({ state, forThisNode, zones }: Server): string =>
  JSON.stringify([state === "ready" ? 0 : 1, forThisNode === undefined ? 1 : forThisNode ? 2 : 3, zones ?? []]);

function whoAnswers(
  { internalLocal, externalLocal }: Service,
  servers: readonly Server[],
  node: ThisNode,
): Pick<ServicePort, "internal" | "external" | "cluster"> {
  const cluster = endpointsOf(clusterServers(servers, node));
  if (!internalLocal && !externalLocal) return { internal: cluster, external: cluster, cluster };
  const local = endpointsOf(localServers(servers));
  return { internal: internalLocal ? local : cluster, external: externalLocal ? local : cluster, cluster };
}

/** Those that are ready, and meant for here where all say for whom they are meant; else those that still serve. */
function clusterServers(servers: readonly Server[], node: ThisNode): readonly Server[] {
  const ready = servers.filter(({ state }) => state === "ready");
  return ready.length > 0 ? ready.filter(meantFor(ready, node)) : servers;
}

/** As `clusterServers`, by themselves: hints do not count, and others elsewhere neither. */
function localServers(servers: readonly Server[]): readonly Server[] {
  const local = servers.filter(({ isLocal }) => isLocal);
  const ready = local.filter(({ state }) => state === "ready");
  return ready.length > 0 ? ready : local;
}

/** Hints count only where every endpoint that is ready has one, and one is for here: nodes first, then zones. */
function meantFor(ready: readonly Server[], { zone }: ThisNode): (server: Server) => boolean {
  const isForNode = ({ forThisNode }: Server): boolean => forThisNode === true;
  if (ready.every(({ forThisNode }) => forThisNode !== undefined) && ready.some(isForNode)) return isForNode;
  const isForZone = ({ zones = [] }: Server): boolean => zone !== undefined && zones.includes(zone);
  if (ready.every(({ zones }) => zones !== undefined) && ready.some(isForZone)) return isForZone;
  return () => true;
}

const endpointsOf = (servers: readonly Server[]): readonly Endpoint[] =>
  servers.map(({ ip, port, isLocal }) => ({ ip, port, weight, isLocal }));
