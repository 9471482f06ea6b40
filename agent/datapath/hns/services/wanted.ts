import { type Cidr, contains, formatIp, type Ip, sameIp } from "../../../../shared/net/ip.ts";
import type { HcnFeatures } from "../../../protocols/hcn/mod.ts";
import type { Endpoint, RefusedService, ServicePort } from "../../services.ts";
import {
  balancerFlags,
  distributions,
  type LoadBalancer,
  mappingFlags,
  protocolNumbers,
  slotOf,
} from "./load-balancer.ts";
import { conjuredMac, providerOf, type RemoteSubnet, type ServiceEndpoint } from "./service-endpoint.ts";

/** What decides how services become load balancers, beside the services themselves. */
export interface NodeView {
  readonly remoteSubnets: readonly RemoteSubnet[];
  /** IPv4. */
  readonly nodeAddress: Ip;
  /** The node's own address, or why services have no IPv6 here. */
  readonly ipv6: { readonly address: Ip } | { readonly lacks: string };
  /** Of this node's pods. */
  readonly podSubnet: Cidr;
  readonly features: HcnFeatures;
  /** `false`: cluster IPs alone. */
  readonly proxyAll: boolean;
  /** Whether the node's address is one at which node ports answer. */
  readonly nodePorts: boolean;
  /** On an overlay: what endpoints see in place of a client, and the node's hardware address. */
  readonly overlay?: { readonly sourceVip: string; readonly nodeMac: string };
  /** Identifiers of this node's own endpoints, by address. */
  readonly local: ReadonlyMap<string, string>;
  /** Identifier of the endpoint that answers health checks for the node. */
  readonly healthEndpoint?: string;
}

export const kinds = ["cluster IP", "node port", "external IP", "load balancer IP", "health port"] as const;

/** A load balancer that is to be, whose endpoints on other nodes are still to be found or made. */
export interface WantedBalancer extends Omit<LoadBalancer, "endpoints"> {
  /** Of the service port. */
  readonly key: string;
  readonly kind: (typeof kinds)[number];
  /** Identifiers. */
  readonly local: readonly string[];
  /** Addresses. */
  readonly remote: readonly string[];
}

export interface Wanted {
  /** By slot. */
  readonly balancers: ReadonlyMap<string, WantedBalancer>;
  /** By address. */
  readonly endpoints: ReadonlyMap<string, ServiceEndpoint>;
  /** What HNS cannot do as it is asked, also of service ports that are in force but for it. */
  readonly refused: readonly RefusedService[];
  /** Addresses of this node's endpoints that HNS does not have yet, by those whose they are. */
  readonly awaited: ReadonlyMap<string, readonly string[]>;
}

/** HNS refuses more where it has to keep connections apart by ports of the node. */
const maxEndpointsWithoutDsr = 64;
/** Kubernetes' own, where nobody has asked for another. */
const usualAffinitySeconds = 10_800;

/** What these services are in HNS; nothing is looked up or made here. */
export function wantedOf(ports: Iterable<ServicePort>, view: NodeView): Wanted {
  const making = new Making(view);
  for (const port of [...ports].sort((a, b) => (a.key < b.key ? -1 : 1))) making.add(port);
  if (view.overlay !== undefined) {
    const { sourceVip: ip, nodeMac: mac } = view.overlay;
    making.endpoints.set(ip, { ip, mac, isRemote: false });
  }
  return making;
}

/** One of the load balancers of a service port. */
interface Front {
  readonly kind: WantedBalancer["kind"];
  readonly vip?: Ip;
  readonly port: number;
  readonly to: readonly Endpoint[];
  readonly isDsr: boolean;
  readonly mappingFlags: number;
}

class Making implements Wanted {
  readonly balancers = new Map<string, WantedBalancer>();
  readonly endpoints = new Map<string, ServiceEndpoint>();
  readonly refused: RefusedService[] = [];
  readonly awaited = new Map<string, string[]>();
  readonly #view: NodeView;

  constructor(view: NodeView) {
    this.#view = view;
  }

  add(service: ServicePort): void {
    const { features, overlay, nodeAddress, proxyAll } = this.#view;
    const { key, clusterIp } = service;
    const impossible = this.#impossible(service);
    if (impossible !== undefined) {
      this.refused.push({ key, reason: impossible });
      return;
    }
    if (overlay !== undefined) {
      const ip = formatIp(clusterIp);
      this.endpoints.set(ip, { ip, mac: overlay.nodeMac, provider: formatIp(nodeAddress), isRemote: true });
    }
    for (const reason of lacking(service, features, proxyAll)) this.refused.push({ key, reason });
    for (const front of this.#frontsOf(service)) {
      const reason = this.#balance(service, front);
      if (reason !== undefined) this.refused.push({ key, reason: `${nameOf(front)}: ${reason}` });
    }
    this.#addHealthPorts(service);
  }

  #impossible({ protocol, clusterIp: { family } }: ServicePort): string | undefined {
    const { overlay, features, ipv6 } = this.#view;
    // Nothing says that HNS balances it.
    if (protocol === "sctp") return "HNS balances TCP and UDP alone";
    if (overlay !== undefined && !features.remoteSubnet)
      return `HNS ${features.version} knows no subnets of other nodes on an overlay`;
    return family === 6 && "lacks" in ipv6 ? ipv6.lacks : undefined;
  }

  #frontsOf(service: ServicePort): readonly Front[] {
    const { features, proxyAll, nodePorts } = this.#view;
    const { clusterIp, port, nodePort, internal, external, keepsClient, sourceRanges } = service;
    const preserves = service.preservesDestination && features.dsr;
    const ownOnly = preserves ? external.filter(({ isLocal }) => isLocal) : external;
    const isDsr = keepsClient && features.dsr;
    const fronts: Front[] = [
      { kind: "cluster IP", vip: clusterIp, port, to: internal, isDsr: features.dsr, mappingFlags: 0 },
    ];
    if (!proxyAll) return fronts;
    const { externalVip, localRoutedVip, useMux, preserveDip } = mappingFlags;
    if (nodePort !== undefined && nodePorts)
      fronts.push({
        kind: "node port",
        port: nodePort,
        to: ownOnly,
        isDsr,
        mappingFlags: externalVip + localRoutedVip,
      });
    for (const vip of service.externalIps)
      fronts.push({ kind: "external IP", vip, port, to: external, isDsr, mappingFlags: externalVip });
    // Who may come cannot be said, and nobody is let in who may not.
    if (sourceRanges !== undefined) return fronts;
    for (const vip of service.ingressIps)
      fronts.push({
        kind: "load balancer IP",
        vip,
        port,
        to: ownOnly,
        isDsr: isDsr || preserves,
        mappingFlags: externalVip + (preserves ? useMux + preserveDip : 0),
      });
    return fronts;
  }

  /** @returns why not, if so */
  #balance(service: ServicePort, front: Front): string | undefined {
    const { family } = service.clusterIp;
    const nodeAddress = this.#nodeAddress(family);
    const onNode = front.to.filter(({ ip }) => sameIp(ip, nodeAddress));
    const backends = front.to.filter((endpoint) => !onNode.includes(endpoint));
    const targets = new Set(backends.map(({ port }) => port));
    const [internalPort] = targets;
    if (targets.size > 1)
      return `its endpoints listen at several ports (${[...targets].join(", ")}), and HNS leads to one`;
    const reason =
      onNode.length > 0
        ? `HNS does not lead to the node itself (${formatIp(nodeAddress)}), one of its endpoints`
        : undefined;
    if (internalPort === undefined) return reason;
    const { local, remote } = this.#split(service.key, backends);
    const count = local.length + remote.length;
    if (!front.isDsr && count > maxEndpointsWithoutDsr)
      return `it has ${count} endpoints, and HNS takes ${maxEndpointsWithoutDsr} without direct server return`;
    // HNS takes none for an error.
    if (count === 0) return reason;
    const keepsEndpoint = service.affinitySeconds !== undefined && this.#view.features.sessionAffinity;
    const taken = this.#put({
      key: service.key,
      kind: front.kind,
      ...(front.vip === undefined ? {} : { vip: formatIp(front.vip) }),
      protocol: protocolNumbers[service.protocol],
      port: front.port,
      internalPort,
      local,
      remote: remote.map(formatIp),
      sourceVip: this.#sourceVipFor(family, remote),
      flags: (front.isDsr ? balancerFlags.dsr : 0) + (family === 6 ? balancerFlags.ipv6 : 0),
      mappingFlags: front.mappingFlags,
      distribution: keepsEndpoint ? distributions.client : distributions.connection,
    });
    if (taken !== undefined) return `"${taken}" has it already`;
    for (const ip of remote) this.#wantRemote(ip);
    return reason;
  }

  /** @returns who has the place */
  #put(balancer: WantedBalancer): string | undefined {
    const slot = slotOf(balancer);
    const holder = this.balancers.get(slot);
    if (holder !== undefined) return holder.key;
    this.balancers.set(slot, balancer);
    return undefined;
  }

  #split(
    key: string,
    backends: readonly Endpoint[],
  ): { readonly local: readonly string[]; readonly remote: readonly Ip[] } {
    const local = new Set<string>();
    const remote = new Map<string, Ip>();
    for (const { ip, isLocal } of backends) {
      const text = formatIp(ip);
      const own = this.#view.local.get(text);
      // A pod of this node has taken over the address of one that was elsewhere, or that says so still.
      if (own !== undefined) local.add(own);
      else if (isLocal) this.awaited.set(text, [...(this.awaited.get(text) ?? []), key]);
      else if (!contains(this.#view.podSubnet, ip)) remote.set(text, ip);
    }
    return { local: [...local], remote: [...remote.values()] };
  }

  /**
   * Endpoints on other nodes answer to this address, so they have to find this node by it: outside of the overlay, and on
   * a node itself, only the node's own is known.
   */
  #sourceVipFor(family: Ip["family"], remote: readonly Ip[]): string {
    const { overlay, remoteSubnets } = this.#view;
    const isInOverlay = (ip: Ip): boolean => {
      const provider = providerOf(ip, remoteSubnets);
      return provider !== undefined && provider !== formatIp(ip);
    };
    return overlay !== undefined && remote.every(isInOverlay) ? overlay.sourceVip : formatIp(this.#nodeAddress(family));
  }

  #nodeAddress(family: Ip["family"]): Ip {
    const { nodeAddress, ipv6 } = this.#view;
    return family === 6 && "address" in ipv6 ? ipv6.address : nodeAddress;
  }

  #wantRemote(address: Ip): void {
    const { overlay, remoteSubnets, nodeAddress } = this.#view;
    const ip = formatIp(address);
    const provider = providerOf(address, remoteSubnets) ?? formatIp(nodeAddress);
    this.endpoints.set(ip, {
      ip,
      mac: conjuredMac(address),
      isRemote: true,
      ...(overlay === undefined ? {} : { provider }),
    });
  }

  /** Of all ports of a service the first makes it; health checks are HTTP whatever the service is. */
  #addHealthPorts({ key, ingressIps, healthCheckNodePort: port, preservesDestination }: ServicePort): void {
    const { healthEndpoint, features, proxyAll } = this.#view;
    if (port === undefined || healthEndpoint === undefined || !proxyAll) return;
    const { useMux, preserveDip } = mappingFlags;
    for (const vip of ingressIps)
      this.#put({
        key,
        kind: "health port",
        vip: formatIp(vip),
        protocol: protocolNumbers.tcp,
        port,
        internalPort: port,
        local: [healthEndpoint],
        remote: [],
        sourceVip: this.#sourceVipFor(vip.family, []),
        flags: vip.family === 6 ? balancerFlags.ipv6 : 0,
        mappingFlags: preservesDestination && features.dsr ? useMux + preserveDip : 0,
        distribution: distributions.connection,
      });
  }
}

const nameOf = ({ kind, vip, port }: Front): string => `${kind} ${vip === undefined ? port : formatIp(vip)}`;

/** What the service asks for that this HNS, or any, does not have; it is in force but for that. */
function lacking(service: ServicePort, features: HcnFeatures, proxyAll: boolean): readonly string[] {
  const { affinitySeconds, keepsClient, preservesDestination, sourceRanges, ingressIps } = service;
  const isOutside = proxyAll && (service.nodePort !== undefined || service.externalIps.length + ingressIps.length > 0);
  const found: string[] = [];
  if (affinitySeconds !== undefined && !features.sessionAffinity)
    found.push(`clients do not keep their endpoint: HNS ${features.version} has no session affinity`);
  else if (affinitySeconds !== undefined && affinitySeconds !== usualAffinitySeconds)
    found.push(`clients keep their endpoint longer than the ${affinitySeconds} s: HNS knows no time`);
  if (isOutside && keepsClient && !features.dsr)
    found.push(`clients do not keep their addresses: HNS ${features.version} has no direct server return`);
  if (isOutside && preservesDestination && !features.dsr)
    found.push(`destinations are not preserved: HNS ${features.version} has no direct server return`);
  if (proxyAll && sourceRanges !== undefined && ingressIps.length > 0)
    found.push(
      "the load balancer's addresses are closed: HNS cannot bound who comes to them (loadBalancerSourceRanges)",
    );
  return found;
}
