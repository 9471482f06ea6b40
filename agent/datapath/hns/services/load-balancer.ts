import { isObject } from "../../../../shared/schema/json-fields.ts";
import type { HcnDocument, HcnLoadBalancer } from "../../../protocols/hcn/mod.ts";
import type { ServicePort } from "../../services.ts";

/** IANA's numbers. */
export const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const satisfies Record<
  ServicePort["protocol"],
  number
>;

/** `Flags` of a load balancer. */
export const balancerFlags = { dsr: 1, ipv6: 2 } as const;

/** `Flags` of a port mapping. */
export const mappingFlags = { localRoutedVip: 2, useMux: 4, preserveDip: 8, externalVip: 16 } as const;

/** `DistributionType`: who gets the same endpoint again. */
export const distributions = { connection: 0, client: 2 } as const;

/** A load balancer as HNS has it, or is to have it: one port at one address, or at all of the node's own. */
export interface LoadBalancer {
  /** Absent: all addresses of the node (a node port). */
  readonly vip?: string;
  /** IANA's number. */
  readonly protocol: number;
  readonly port: number;
  readonly internalPort: number;
  /** Identifiers of endpoints, sorted. */
  readonly endpoints: readonly string[];
  /** What endpoints see in place of a client that they could not answer themselves. */
  readonly sourceVip: string;
  readonly flags: number;
  readonly mappingFlags: number;
  readonly distribution: number;
}

/** What HNS gives to one load balancer alone; a node port is one of each family. */
export function slotOf({
  vip,
  protocol,
  port,
  flags,
}: Pick<LoadBalancer, "vip" | "protocol" | "port" | "flags">): string {
  const all = (flags & balancerFlags.ipv6) === 0 ? "*" : "*/6";
  return `${vip ?? all} ${protocol} ${port}`;
}

export function toDocument(id: string, balancer: LoadBalancer): HcnDocument {
  const { vip, protocol, port, internalPort, endpoints, sourceVip, flags, distribution } = balancer;
  return {
    ID: id,
    HostComputeEndpoints: endpoints,
    SourceVIP: sourceVip,
    FrontendVIPs: vip === undefined ? [] : [vip],
    PortMappings: [
      {
        Protocol: protocol,
        InternalPort: internalPort,
        ExternalPort: port,
        DistributionType: distribution,
        Flags: balancer.mappingFlags,
      },
    ],
    Flags: flags,
    SchemaVersion: { Major: 2, Minor: 0 },
  };
}

/** A load balancer that HNS lists, anybody's. */
export interface PresentBalancer {
  readonly id: string;
  /** Of each of its ports at each of its addresses: those of others have several. */
  readonly slots: readonly string[];
  /** For comparison: of two with the same text nothing differs that anybody asked for. */
  readonly text: string;
  /** The same as HNS writes it, which may be in other words than it was given. */
  readonly shown: string;
  readonly endpoints: readonly string[];
  readonly isDsr: boolean;
}

/** What HNS leaves out of an answer is its default. */
export function readPresent({ id, endpointIds, document }: HcnLoadBalancer): PresentBalancer {
  const mappings = listAt(document, "PortMappings");
  const vips = listAt(document, "FrontendVIPs").map(String);
  const flags = numberAt(document, "Flags");
  const slots = mappings.flatMap((mapping) =>
    (vips.length === 0 ? [undefined] : vips).map((vip) =>
      slotOf({
        ...(vip === undefined ? {} : { vip }),
        protocol: numberAt(mapping, "Protocol"),
        port: numberAt(mapping, "ExternalPort"),
        flags,
      }),
    ),
  );
  const text = JSON.stringify([
    [...endpointIds].sort(),
    String(document["SourceVIP"] ?? ""),
    vips,
    flags,
    mappings.map((mapping) => mappingKeys.map((key) => numberAt(mapping, key))),
  ]);
  return { id, slots, text, shown: text, endpoints: endpointIds, isDsr: (flags & balancerFlags.dsr) !== 0 };
}

const mappingKeys = ["Protocol", "InternalPort", "ExternalPort", "DistributionType", "Flags"] as const;

/** `PresentBalancer.text` of one that is as it is to be. */
export const textOf = (balancer: LoadBalancer): string =>
  readPresent({ id: "", endpointIds: balancer.endpoints, document: toDocument("", balancer) }).text;

const listAt = (document: unknown, key: string): readonly unknown[] => {
  const value = isObject(document) ? document[key] : undefined;
  return Array.isArray(value) ? value : [];
};

const numberAt = (document: unknown, key: string): number => {
  const value = isObject(document) ? document[key] : undefined;
  return typeof value === "number" ? value : 0;
};
