import { type Cidr, contains, formatCidr, formatIp, type Ip, sameIp } from "../../shared/net/ip.ts";
import type { Endpoint, ServicePort } from "../datapath/services.ts";

/** The first packet of a connection, to an address that may be a service's. */
export interface TracedPacket {
  readonly ip: Ip;
  readonly port: number;
  readonly protocol: ServicePort["protocol"];
  readonly from: Sender;
}

export interface Sender {
  readonly t: "pod" | "host" | "outside";
  /** As far as they are known. */
  readonly ips: readonly Ip[];
}

/** What this node balances, and where. */
export interface Balanced {
  readonly ports: Iterable<ServicePort>;
  /** `false`: pods' packets to cluster IPs alone. */
  readonly proxyAll: boolean;
  /** Blocks of the node's addresses at which node ports answer; none: all. */
  readonly nodePortAddresses: readonly Cidr[];
  /** This node's own, without loopback. */
  readonly nodeAddresses: readonly Ip[];
}

/** `left alone`: it is no service's here, and goes on as it is. */
export type TracedOutcome = "balanced" | "refused" | "dropped" | "left alone";

export interface Traced {
  readonly outcome: TracedOutcome;
  /** Of the service port; absent: there is none. */
  readonly key?: string;
  /** Why, in sentences, in the order of the decisions. */
  readonly reasons: readonly string[];
  /** One of which gets it. */
  readonly endpoints: readonly Endpoint[];
}

const placeNames = {
  clusterIp: "the cluster IP",
  ingress: "a load balancer's address",
  external: "an external IP",
  nodePort: "the node port",
} as const;
type Place = keyof typeof placeNames;

/** Where a packet goes, by what is wanted: flows and rules are not asked. */
export function traceService(balanced: Balanced, packet: TracedPacket): Traced {
  const { ip, port, protocol, from } = packet;
  const asked = `${formatIp(ip)} port ${port}/${protocol}`;
  const [service, place] = find(balanced, packet) ?? [];
  if (service === undefined || place === undefined) return leftAlone(`No service has ${asked} on this node`);
  const { key } = service;
  const is = `${asked} is ${placeNames[place]} of "${key}"`;
  if (!balanced.proxyAll && (place !== "clusterIp" || from.t !== "pod"))
    return { ...leftAlone(is, 'With "services.proxyAll: false" only what pods send to cluster IPs is balanced'), key };
  const { nodePortAddresses: blocks } = balanced;
  if (place === "nodePort" && blocks.length > 0 && !blocks.some((block) => contains(block, ip)))
    return { ...leftAlone(is, `"services.nodePortAddresses" has no block with ${formatIp(ip)}`), key };
  const ranges = place === "ingress" ? rangesSay(service, from) : undefined;
  const reasons = [is, ...(ranges === undefined ? [] : [ranges.reason])];
  if (ranges?.isOut === true) return { outcome: "dropped", key, reasons, endpoints: [] };
  const { reason, endpoints } = whoAnswers(service, place, from);
  if (endpoints.length > 0) {
    const more = [reason, ...stays(service), ...mayMeetItself(endpoints, from)];
    return { outcome: "balanced", key, reasons: [...reasons, ...more], endpoints };
  }
  if (service.internal.length + service.cluster.length === 0)
    return { outcome: "refused", key, reasons: [...reasons, "No endpoint is ready or drains, on any node"], endpoints };
  const none = `${reason}; it has none, so that the packet is dropped`;
  return { outcome: "dropped", key, reasons: [...reasons, none], endpoints };
}

const leftAlone = (...reasons: readonly string[]): Traced => ({ outcome: "left alone", reasons, endpoints: [] });

/** Addresses before ports of the node. */
function find(balanced: Balanced, packet: TracedPacket): readonly [ServicePort, Place] | undefined {
  const { ip } = packet;
  const isOwn = balanced.nodeAddresses.some((own) => sameIp(own, ip));
  let byNodePort: ServicePort | undefined;
  for (const service of balanced.ports) {
    const { clusterIp, port, protocol, nodePort, externalIps, ingressIps } = service;
    if (protocol !== packet.protocol || clusterIp.family !== ip.family) continue;
    if (port === packet.port) {
      const has = (ips: readonly Ip[]): boolean => ips.some((own) => sameIp(own, ip));
      if (has([clusterIp])) return [service, "clusterIp"];
      if (has(ingressIps)) return [service, "ingress"];
      if (has(externalIps)) return [service, "external"];
    }
    if (isOwn && nodePort === packet.port) byNodePort = service;
  }
  return byNodePort === undefined ? undefined : [byNodePort, "nodePort"];
}

/** `undefined`: anybody may come. */
function rangesSay(
  { sourceRanges, clusterIp: { family } }: ServicePort,
  { ips }: Sender,
): { readonly reason: string; readonly isOut: boolean } | undefined {
  if (sourceRanges === undefined) return undefined;
  const only = `Its loadBalancerSourceRanges let in ${sourceRanges.map(formatCidr).join(", ") || "nobody"}`;
  const own = ips.filter((ip) => ip.family === family);
  if (own.length === 0 && sourceRanges.length > 0)
    return { reason: `${only}: taken as one of these, since the sender's address is not said`, isOut: false };
  const found = own.find((ip) => sourceRanges.some((range) => contains(range, ip)));
  if (found !== undefined) return { reason: `${only}: also the sender, ${formatIp(found)}`, isOut: false };
  const sender = own.length === 0 ? "" : `: not the sender, ${own.map(formatIp).join(", ")}`;
  return { reason: `${only}${sender}; the packet is dropped`, isOut: true };
}

function whoAnswers(
  service: ServicePort,
  place: Place,
  from: Sender,
): { readonly reason: string; readonly endpoints: readonly Endpoint[] } {
  const { internal, external, cluster, keepsClient } = service;
  if (place === "clusterIp") {
    const isAll =
      internal.length === cluster.length && internal.every(({ ip }) => cluster.some((other) => sameIp(other.ip, ip)));
    const reason = isAll
      ? "At the cluster IP all answer that the service has for this node"
      : "internalTrafficPolicy: Local, so that only endpoints of this node answer";
    return { reason, endpoints: internal };
  }
  if (from.t !== "outside")
    return { reason: "To pods and the node all answer, whatever externalTrafficPolicy says", endpoints: cluster };
  const reason = keepsClient
    ? "externalTrafficPolicy: Local, so that only endpoints of this node answer, which see the client's address"
    : "externalTrafficPolicy: Cluster, so that all answer, which see an address of this node as the client's";
  return { reason, endpoints: external };
}

const stays = ({ affinitySeconds }: ServicePort): string[] =>
  affinitySeconds === undefined ? [] : [`A client keeps its endpoint for ${affinitySeconds} s`];

const mayMeetItself = (endpoints: readonly Endpoint[], { t, ips }: Sender): string[] =>
  t === "pod" && endpoints.some(({ ip }) => ips.some((own) => sameIp(own, ip)))
    ? ["The sender is an endpoint itself, and may come to itself"]
    : [];
