import {
  type ApiObject,
  type FieldTable,
  listIn,
  mapIn,
  mapsIn,
  objectMeta,
  type Resource,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import { type Cidr, firstOf, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import type { ServicePort } from "../datapath/services.ts";

/** A Service (core/v1), as far as a node has to do something for it. */
export interface Service {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** RFC 3339 in UTC with whole seconds, which sorts as text. */
  readonly created: string;
  /** One per family at most. */
  readonly clusterIps: readonly Ip[];
  readonly ports: readonly ServicePortSpec[];
  readonly externalIps: readonly Ip[];
  readonly ingressIps: readonly Ip[];
  /** Absent: anybody may come to the ingress addresses. */
  readonly sourceRanges?: readonly Cidr[];
  readonly affinitySeconds?: number;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  readonly healthCheckNodePort?: number;
  readonly preservesDestination: boolean;
  /** What of it was not understood and is left out, by its path. */
  readonly problems: readonly string[];
}

export interface ServicePortSpec {
  /** Empty for an only port. */
  readonly name: string;
  readonly protocol: ServicePort["protocol"];
  readonly port: number;
  readonly nodePort?: number;
}

/** Services that another proxy takes care of have it. */
const proxyNameLabel = "service.kubernetes.io/service-proxy-name";
/** Services that this node may have something to do for. */
export const proxiedServices = `!${proxyNameLabel}`;

/** Kubernetes' own (`clientIP.timeoutSeconds`). */
const usualAffinitySeconds = 10_800;
const longestAffinitySeconds = 86_400;
/** Of one service; those of people have ten. What an object of 1.5 MiB could hold would keep a node busy for long. */
const maxPorts = 1_000;
const maxAddresses = 1_000;

const ingress: FieldTable = { 1: ["ip", "string"], 3: ["ipMode", "string"] };

const fields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: [
    "spec",
    "message",
    {
      1: [
        "ports",
        "messages",
        { 1: ["name", "string"], 2: ["protocol", "string"], 3: ["port", "integer"], 5: ["nodePort", "integer"] },
      ],
      3: ["clusterIP", "string"],
      4: ["type", "string"],
      5: ["externalIPs", "strings"],
      7: ["sessionAffinity", "string"],
      9: ["loadBalancerSourceRanges", "strings"],
      11: ["externalTrafficPolicy", "string"],
      12: ["healthCheckNodePort", "integer"],
      14: ["sessionAffinityConfig", "message", { 1: ["clientIP", "message", { 1: ["timeoutSeconds", "integer"] }] }],
      18: ["clusterIPs", "strings"],
      22: ["internalTrafficPolicy", "string"],
    },
  ],
  3: ["status", "message", { 1: ["loadBalancer", "message", { 1: ["ingress", "messages", ingress] }] }],
};

export const services: Resource<Service> = {
  version: "v1",
  plural: "services",
  fields,
  project: readService,
  same: (a, b) => Bun.deepEquals(a, b),
};

/**
 * Reads a Service. Unknown parts do not matter; an address or a port that is none is left out and named; a range of
 * sources that is none lets nobody in. Headless ones, ExternalNames and those of other proxies are none.
 */
export function readService(object: ApiObject): Service | undefined {
  const [metadata, spec] = [mapIn(object, "metadata"), mapIn(object, "spec")];
  const [namespace, name] = [textIn(metadata, "namespace"), textIn(metadata, "name")];
  if (namespace === undefined || name === undefined || spec["type"] === "ExternalName") return undefined;
  if (Object.hasOwn(mapIn(metadata, "labels"), proxyNameLabel)) return undefined;
  const problems: string[] = [];
  const clusterIps = clusterIpsOf(spec);
  if (clusterIps.length === 0) return undefined;
  const externalIps = addresses(listIn(spec, "externalIPs"), "spec.externalIPs", problems);
  const type = spec["type"] ?? "ClusterIP";
  // The policy counts only where somebody can come from outside.
  const isExternal = type === "LoadBalancer" || type === "NodePort" || externalIps.length > 0;
  const externalLocal = isExternal && spec["externalTrafficPolicy"] === "Local";
  const sourceRanges = rangesOf(spec, problems);
  const affinitySeconds = affinityOf(spec);
  const healthCheckNodePort = spec["healthCheckNodePort"];
  const checksHealth = type === "LoadBalancer" && externalLocal && isPort(healthCheckNodePort);
  return {
    namespace,
    name,
    uid: textIn(metadata, "uid") ?? "",
    created: textIn(metadata, "creationTimestamp") ?? "",
    clusterIps,
    ports: portsOf(spec, problems),
    externalIps,
    ingressIps: ingressOf(mapIn(mapIn(object, "status"), "loadBalancer"), problems),
    ...(sourceRanges === undefined ? {} : { sourceRanges }),
    ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
    internalLocal: spec["internalTrafficPolicy"] === "Local",
    externalLocal,
    ...(checksHealth ? { healthCheckNodePort } : {}),
    preservesDestination: mapIn(metadata, "annotations")["preserve-destination"] === "true",
    problems,
  };
}

/** Whether it is the address of a single host that others can reach. */
export function isHostAddress({ family, value }: Ip): boolean {
  if (family === 6) return value > 1n && value >> 120n !== 0xffn && value >> 118n !== 0xfe80n >> 6n;
  const first = Number(value >> 24n);
  return first !== 0 && first !== 127 && first < 224 && value >> 16n !== 0xa9fen;
}

export const isPort = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;

export const protocolOf = (entry: ApiObject): ServicePort["protocol"] | undefined =>
  knownProtocols[textIn(entry, "protocol") ?? "TCP"];

const knownProtocols: Readonly<Record<string, ServicePort["protocol"]>> = Object.assign(Object.create(null), {
  TCP: "tcp",
  UDP: "udp",
  SCTP: "sctp",
});

/** None where the service is headless, or where none has been given to it yet. */
function clusterIpsOf(spec: ApiObject): Ip[] {
  const written = listIn(spec, "clusterIPs");
  const all = addresses(written.length > 0 ? written : [spec["clusterIP"]], "", []);
  return all.filter(({ family }, i) => all.findIndex((other) => other.family === family) === i);
}

function addresses(written: readonly unknown[], at: string, problems: string[]): Ip[] {
  const found = new Map<string, Ip>();
  for (const [i, text] of written.slice(0, maxAddresses).entries()) {
    const ip = typeof text === "string" ? parseIp(text) : undefined;
    if (ip !== undefined && isHostAddress(ip)) found.set(`${ip.family} ${ip.value}`, ip);
    else problems.push(`${at}[${i}]`);
  }
  if (written.length > maxAddresses) problems.push(`${at}[${maxAddresses}]`);
  return [...found.values()];
}

function portsOf(spec: ApiObject, problems: string[]): ServicePortSpec[] {
  const written = mapsIn(spec, "ports");
  const found = new Map<string, ServicePortSpec>();
  const places = new Set<string>();
  for (const [i, entry] of written.slice(0, maxPorts).entries()) {
    const [name, protocol, { port, nodePort }] = [textIn(entry, "name") ?? "", protocolOf(entry), entry];
    const own = [`${protocol} ${port}`, ...(isPort(nodePort) ? [`node ${protocol} ${nodePort}`] : [])];
    if (protocol === undefined || !isPort(port) || found.has(name) || own.some((place) => places.has(place))) {
      problems.push(`spec.ports[${i}]`);
      continue;
    }
    found.set(name, { name, protocol, port, ...(isPort(nodePort) ? { nodePort } : {}) });
    for (const place of own) places.add(place);
  }
  if (written.length > maxPorts) problems.push(`spec.ports[${maxPorts}]`);
  return [...found.values()];
}

/** Addresses whose packets come as they are; those of `ipMode: Proxy` come with a node's or a pod's. */
function ingressOf(loadBalancer: ApiObject, problems: string[]): Ip[] {
  const entries = mapsIn(loadBalancer, "ingress").filter(
    (entry) => textIn(entry, "ip") !== undefined && (textIn(entry, "ipMode") ?? "VIP") === "VIP",
  );
  return addresses(
    entries.map(({ ip }) => ip),
    "status.loadBalancer.ingress",
    problems,
  );
}

/** A range that is none lets nobody in, but others stay: what is left of a list is no wider than the list. */
function rangesOf(spec: ApiObject, problems: string[]): Cidr[] | undefined {
  const written = listIn(spec, "loadBalancerSourceRanges");
  if (written.length === 0) return undefined;
  return written.slice(0, maxAddresses).flatMap((text, i) => {
    const cidr = typeof text === "string" ? parseCidr(text.trim()) : undefined;
    if (cidr === undefined) problems.push(`spec.loadBalancerSourceRanges[${i}]`);
    return cidr === undefined ? [] : { ip: firstOf(cidr), prefix: cidr.prefix };
  });
}

function affinityOf(spec: ApiObject): number | undefined {
  if (spec["sessionAffinity"] !== "ClientIP") return undefined;
  const seconds = mapIn(mapIn(spec, "sessionAffinityConfig"), "clientIP")["timeoutSeconds"];
  const isTime =
    typeof seconds === "number" && Number.isInteger(seconds) && seconds > 0 && seconds <= longestAffinitySeconds;
  return isTime ? seconds : usualAffinitySeconds;
}
