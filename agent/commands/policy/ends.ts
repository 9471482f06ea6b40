import { type ApiObject, listIn, mapIn, mapsIn, type Resource, textIn } from "../../../shared/kubernetes/mod.ts";
import { formatIp, type Ip, parseIp, sameIp } from "../../../shared/net/ip.ts";
import { isSubject, type Pod, pods } from "../../../shared/policy/mod.ts";
import { readService, readSlice, type Service } from "../../services/mod.ts";
import type { AskedCluster } from "./ask-cluster.ts";
import type { NamedEnd } from "./explain.ts";
import type { Asked } from "./why.ts";

/** What people write for an end of a connection. */
export type WrittenEnd =
  | { readonly t: "pod" | "service"; readonly namespace: string; readonly name: string }
  | { readonly t: "node"; readonly name: string }
  | { readonly t: "address"; readonly ip: Ip };

export const endRule = "namespace/pod, pod, an address, node/NAME";

/** @param namespace of names without one */
export function readEnd(text: string, namespace: string): WrittenEnd | undefined {
  const ip = parseIp(text);
  if (ip !== undefined) return { t: "address", ip };
  const parts = text.split("/");
  if (!parts.every((part) => namePattern.test(part))) return undefined;
  const [first = "", second = "", third] = parts;
  if (parts.length === 1) return { t: "pod", namespace, name: first };
  if (first === "service") {
    const [of, name] = third === undefined ? [namespace, second] : [second, third];
    return parts.length <= 3 ? { t: "service", namespace: of, name } : undefined;
  }
  if (parts.length > 2) return undefined;
  return first === "node" ? { t: "node", name: second } : { t: "pod", namespace: first, name: second };
}

/** Kubernetes' names are DNS subdomains. */
const namePattern = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** An end with all of its addresses. */
export interface FoundEnd {
  readonly name: string;
  readonly ends: readonly NamedEnd[];
}

/** A service, whose endpoints get what is sent to it. */
export interface FoundService {
  readonly name: string;
  readonly service: Service;
  endpointsOf(port: Service["ports"][number]): readonly (NamedEnd & { readonly port: number })[];
}

/** With headless ones, whose endpoints are asked for as well. */
const services: Resource<Service> = { version: "v1", plural: "services", project: readService };

const endpointSlices: Resource<
  NonNullable<ReturnType<typeof readSlice>> & { readonly podAt: ReadonlyMap<string, string> }
> = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  project: (object) => {
    const slice = readSlice(object, "");
    return slice === undefined ? undefined : { ...slice, podAt: podsIn(object) };
  },
};

/** The pod that an address is said to be of: on a node's network an address is of several. */
const podsIn = (slice: ApiObject): ReadonlyMap<string, string> =>
  new Map(
    mapsIn(slice, "endpoints").flatMap((endpoint) => {
      const [ip] = ipsIn(listIn(endpoint, "addresses"));
      const target = mapIn(endpoint, "targetRef");
      const pod = target["kind"] === "Pod" ? textIn(target, "name") : undefined;
      return ip === undefined || pod === undefined ? [] : [[formatIp(ip), pod] as const];
    }),
  );

const nodes: Resource<{ readonly name: string; readonly ips: readonly Ip[] }> = {
  version: "v1",
  plural: "nodes",
  project: (object) => {
    const name = textIn(mapIn(object, "metadata"), "name");
    if (name === undefined) return undefined;
    return { name, ips: ipsIn(mapsIn(mapIn(object, "status"), "addresses").map(({ address }) => address)) };
  },
};

const ipsIn = (texts: readonly unknown[]): Ip[] =>
  texts.flatMap((text) => (typeof text === "string" ? (parseIp(text) ?? []) : []));

/** `is` says what there is not. */
export type Found = FoundEnd | FoundService | { readonly is: string };

/** @throws {ApiError} */
export async function findEnd(cluster: AskedCluster, written: WrittenEnd): Promise<Found> {
  switch (written.t) {
    case "pod": {
      const { namespace, name } = written;
      const [pod] = await cluster.list(pods, { namespace, fields: `metadata.name=${name}` });
      return pod?.name === name ? podEnd(pod) : { is: `there is no pod "${name}" in namespace "${namespace}"` };
    }
    case "service": {
      const { namespace, name } = written;
      const [service] = await cluster.list(services, { namespace, fields: `metadata.name=${name}` });
      if (service?.name !== name) return { is: `there is no service "${name}" in namespace "${namespace}"` };
      return await serviceEnd(cluster, service);
    }
    case "node": {
      const [node] = await cluster.list(nodes, { fields: `metadata.name=${written.name}` });
      if (node?.name !== written.name) return { is: `there is no node "${written.name}"` };
      const name = `node ${node.name}`;
      return { name, ends: node.ips.map((ip) => ({ name, endpoint: { t: "node", node: node.name, ip } })) };
    }
    case "address":
      return await whoHas(cluster, written.ip);
  }
}

function podEnd(pod: Pod, ips = pod.ips): FoundEnd {
  const name = `${pod.namespace}/${pod.name}`;
  const ends = ips.map((ip) => ({ name, endpoint: { t: "pod", pod, ip } as const }));
  return { name, ends: ends.length > 0 ? ends : [{ name, endpoint: { t: "pod", pod } }] };
}

/** A pod before a node, whose address pods on its network have too; else a service; else somebody outside. */
async function whoHas(cluster: AskedCluster, ip: Ip): Promise<Found> {
  const has = ({ ips }: { readonly ips: readonly Ip[] }): boolean => ips.some((own) => sameIp(own, ip));
  const isPods = (pod: Pod): boolean => has(pod) && isSubject(pod);
  // The field has the first address only.
  const near = await cluster.list(pods, { fields: `status.podIP=${formatIp(ip)}` });
  const pod = near.find(isPods) ?? (await cluster.list(pods)).find(isPods);
  if (pod !== undefined) return podEnd(pod, [ip]);
  const name = formatIp(ip);
  const node = (await cluster.list(nodes)).find(has);
  if (node !== undefined)
    return {
      name: `node ${node.name}`,
      ends: [{ name: `node ${node.name}`, endpoint: { t: "node", node: node.name, ip } }],
    };
  const service = (await cluster.list(services)).find(({ clusterIps, externalIps, ingressIps }) =>
    has({ ips: [...clusterIps, ...externalIps, ...ingressIps] }),
  );
  if (service !== undefined) return await serviceEnd(cluster, service);
  return { name, ends: [{ name, endpoint: { t: "outside", ip } }] };
}

async function serviceEnd(cluster: AskedCluster, service: Service): Promise<FoundService> {
  const { namespace } = service;
  const slices = await cluster.list(endpointSlices, {
    namespace,
    labels: `kubernetes.io/service-name=${service.name}`,
  });
  const known = new Map((await cluster.list(pods, { namespace })).map((pod) => [pod.name, pod]));
  return {
    name: `service ${namespace}/${service.name}`,
    service,
    endpointsOf: (port) =>
      slices.flatMap(({ ports, endpoints, podAt }) => {
        const target = ports.find(({ name, protocol }) => name === port.name && protocol === port.protocol);
        if (target === undefined) return [];
        return endpoints
          .filter(({ state }) => state === "ready")
          .map(({ ip }) => {
            const pod = known.get(podAt.get(formatIp(ip)) ?? "");
            return {
              name: pod === undefined ? formatIp(ip) : `${namespace}/${pod.name}`,
              endpoint: pod === undefined ? ({ t: "outside", ip } as const) : ({ t: "pod", pod, ip } as const),
              port: target.port,
            };
          });
      }),
  };
}

/** What is asked for in `--port` and `--protocol`. */
export interface WrittenTraffic {
  readonly protocol: string;
  /** A number, or the name of a port. */
  readonly port?: string;
}

/**
 * Each address of one end with those of the other that it can talk to.
 * @returns a text that says why there are none
 */
export function questionsOf(
  source: FoundEnd,
  destination: FoundEnd | FoundService,
  traffic: WrittenTraffic | undefined,
): readonly Asked[] | string {
  const asked =
    "service" in destination ? toService(source, destination, traffic) : toEnds(source, destination, traffic);
  if (typeof asked === "string" || asked.length > 0) return asked;
  return `${source.name} and ${destination.name} have no addresses of one family`;
}

function toEnds(
  source: FoundEnd,
  destination: FoundEnd,
  traffic: WrittenTraffic | undefined,
): readonly Asked[] | string {
  const asked: Asked[] = [];
  for (const [from, to] of pairs(source.ends, destination.ends)) {
    const resolved = traffic === undefined ? undefined : trafficTo(to, traffic);
    if (typeof resolved === "string") return resolved;
    asked.push({ source: from, destination: to, ...(resolved === undefined ? {} : { traffic: resolved }) });
  }
  return asked;
}

function trafficTo({ name, endpoint }: NamedEnd, { protocol, port }: WrittenTraffic): Asked["traffic"] | string {
  if (port === undefined) return { protocol };
  if (/^\d+$/.test(port)) return { protocol, port: Number(port) };
  const named = endpoint.t === "pod" ? endpoint.pod.ports : [];
  const found = named.find((each) => each.name === port && each.protocol === protocol);
  if (found !== undefined) return { protocol, port: found.port };
  return `${name} has no ${protocol} port of the name "${port}"`;
}

function toService(
  { ends }: FoundEnd,
  { name, service, endpointsOf }: FoundService,
  traffic: WrittenTraffic | undefined,
): readonly Asked[] | string {
  const wanted = service.ports.filter(
    (each) =>
      traffic === undefined ||
      (each.protocol.toUpperCase() === traffic.protocol &&
        [undefined, String(each.port), each.name].some((of) => of === traffic.port)),
  );
  const has = service.ports.map(({ protocol, port }) => `${protocol.toUpperCase()} ${port}`).join(", ") || "none";
  if (wanted.length === 0) return `${name} has no such port, but ${has}`;
  const endpoints = wanted.flatMap((port) => endpointsOf(port).map((endpoint) => ({ endpoint, port })));
  if (endpoints.length === 0) return `${name} has no endpoint that is ready`;
  return endpoints.flatMap(({ endpoint: { port, ...to }, port: { protocol } }) =>
    pairs(ends, [to]).map(([source, destination]) => ({
      ...{ source, destination },
      traffic: { protocol: protocol.toUpperCase(), port },
    })),
  );
}

/** Ends of one family; one without an address, as of a pod that starts, with any. */
function pairs(sources: readonly NamedEnd[], destinations: readonly NamedEnd[]): readonly [NamedEnd, NamedEnd][] {
  return sources.flatMap((source) =>
    destinations.flatMap((destination): [NamedEnd, NamedEnd][] => {
      const [from, to] = [source.endpoint.ip, destination.endpoint.ip];
      return from === undefined || to === undefined || from.family === to.family ? [[source, destination]] : [];
    }),
  );
}
