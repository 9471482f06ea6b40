import { formatIp } from "../../../../shared/ip.ts";
import { type Endpoint, mostEndpoints, type Service } from "./service.ts";

/** From one state of a service to the next; `undefined` is none. */
export interface ServiceChange {
  readonly key: string;
  readonly before: Service | undefined;
  readonly after: Service | undefined;
}

/** An endpoint that its service no longer has. */
export interface GoneEndpoint {
  readonly service: Pick<Service, "clusterIp" | "protocol" | "port">;
  readonly endpoint: Pick<Endpoint, "ip" | "port">;
}

const nameOf = ({ ip, port }: Pick<Endpoint, "ip" | "port">): string => `${formatIp(ip)} ${port}`;

/**
 * The service as the switch can have it: endpoints of its own family, each once, as many as a group takes, and in an
 * order of their own, so that the same ones in another order are no change.
 */
export function normalised(service: Service): Service {
  const { family } = service.clusterIp;
  const own = service.endpoints.filter(({ ip }) => ip.family === family);
  const once = new Map(own.map((endpoint) => [nameOf(endpoint), endpoint]));
  const sorted = [...once.values()].sort((a, b) => Number(a.ip.value - b.ip.value) || a.port - b.port);
  return { ...service, endpoints: sorted.slice(0, mostEndpoints) };
}

/** What a service is met by: one service at a time can have it. */
export const placeOf = ({ clusterIp, protocol, port }: Service): string => `${formatIp(clusterIp)} ${protocol} ${port}`;

/** Two normalised services with one of these are the same. */
export function signatureOf(service: Service): string {
  const to = service.endpoints.map((endpoint) => `${nameOf(endpoint)} ${endpoint.weight}`).join(",");
  return `${placeOf(service)} ${service.affinitySeconds ?? 0}|${to}`;
}

/** Flows and groups that come or go, at the most. */
export const sizeOf = ({ before, after }: ServiceChange): number =>
  [before, after].reduce((sum, service) => sum + (service === undefined ? 0 : 3 + service.endpoints.length), 0);

/** Of datagrams, which come without end from one port: of streams, both ends see to it that they end. */
export function goneEndpoints({ before, after }: ServiceChange): GoneEndpoint[] {
  if (before === undefined || before.protocol !== "udp") return [];
  const stay = new Set(after === undefined || placeOf(after) !== placeOf(before) ? [] : after.endpoints.map(nameOf));
  return before.endpoints
    .filter((endpoint) => !stay.has(nameOf(endpoint)))
    .map((endpoint) => ({ service: before, endpoint }));
}
