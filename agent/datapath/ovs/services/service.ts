import type { Live } from "../../../../shared/async/live-value.ts";
import { formatIp, type Ip, sameIp } from "../../../../shared/net/ip.ts";

export const protocols = ["tcp", "udp", "sctp"] as const;

/** Endpoints of one service: their group is one message of at most 64 KiB, with about 100 bytes for each. */
export const maxEndpoints = 500;

/** One port of a service at one address. */
export interface Service {
  /** `namespace/name:port`, and the family where it has both; unique. */
  readonly key: string;
  readonly clusterIp: Ip;
  readonly protocol: (typeof protocols)[number];
  readonly port: number;
  readonly endpoints: readonly Endpoint[];
  /** Seconds that a client keeps its endpoint (Kubernetes' `ClientIP`); absent: each connection is chosen anew. */
  readonly affinitySeconds?: number;
}

export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
  /** Its share among the others'; 1 to 65535. */
  readonly weight: number;
}

/** Where services come from: by key, a whole new map with every change. */
export interface ServiceSource extends Live<ReadonlyMap<string, Service>>, AsyncDisposable {
  /** Why the present state of the source is not used, if so. */
  readonly fault?: string | undefined;
}

/** The change of a service; `undefined` stands for a missing state. */
export interface ServiceChange {
  readonly key: string;
  /** As the source has it, or had it. */
  readonly given: Service;
  /** Both in normalised form. */
  readonly before: Service | undefined;
  readonly after: Service | undefined;
}

/** An endpoint that its service no longer has. */
export interface RemovedEndpoint {
  readonly service: Pick<Service, "clusterIp" | "protocol" | "port">;
  readonly endpoint: Pick<Endpoint, "ip" | "port">;
}

const nameOf = ({ ip, port }: Pick<Endpoint, "ip" | "port">): string => `${formatIp(ip)} ${port}`;

/**
 * The normalised service: endpoints of its own family, each once, at most as many as a group takes, and sorted, so that
 * another order is no change.
 */
export function normalised(service: Service): Service {
  const { family } = service.clusterIp;
  const own = service.endpoints.filter(({ ip }) => ip.family === family);
  const once = new Map(own.map((endpoint) => [nameOf(endpoint), endpoint]));
  const sorted = [...once.values()].sort((a, b) => Number(a.ip.value - b.ip.value) || a.port - b.port);
  return { ...service, endpoints: sorted.slice(0, maxEndpoints) };
}

/** Whether they have the same address and port, which only one service at a time can have. */
export const hasSameAddress = (a: Service, b: Service): boolean =>
  sameIp(a.clusterIp, b.clusterIp) && a.protocol === b.protocol && a.port === b.port;

/** Whether two services are equal, including the order of endpoints. Called for every service at each change. */
export function isSame(a: Service, b: Service): boolean {
  return (
    hasSameAddress(a, b) &&
    a.affinitySeconds === b.affinitySeconds &&
    a.endpoints.length === b.endpoints.length &&
    a.endpoints.every((endpoint, i) => isSameEndpoint(endpoint, b.endpoints[i]))
  );
}

const isSameEndpoint = ({ ip, port, weight }: Endpoint, other: Endpoint | undefined): boolean =>
  other !== undefined && sameIp(ip, other.ip) && port === other.port && weight === other.weight;

/** The largest number of flows and groups that are added or removed. */
export const sizeOf = ({ before, after }: ServiceChange): number =>
  [before, after].reduce((sum, service) => sum + (service === undefined ? 0 : 3 + service.endpoints.length), 0);

/** Only for datagrams, which may continue from one port for ever; streams are ended by their peers. */
export function removedEndpoints({ before, after }: ServiceChange): RemovedEndpoint[] {
  if (before === undefined || before.protocol !== "udp") return [];
  const stay = new Set(after === undefined || !hasSameAddress(after, before) ? [] : after.endpoints.map(nameOf));
  return before.endpoints
    .filter((endpoint) => !stay.has(nameOf(endpoint)))
    .map((endpoint) => ({ service: before, endpoint }));
}
