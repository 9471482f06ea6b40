import type { CniResult } from "../../../shared/cni/types.ts";
import { formatCidr, formatIp, gatewayIn, type Ip } from "../../../shared/net/ip.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import type { HcnDocument } from "../../protocols/hcn/mod.ts";
import type { PortMapping } from "../datapath.ts";
import { gatewayOf } from "../routes.ts";
import type { HnsNetwork, NodeAdapter } from "./options.ts";

const SchemaVersion = { Major: 2, Minor: 0 };

/**
 * A network of type Transparent, in V1: of this type its fields are the ones that are known to work
 * (`ManagementIP` is an address with its length, the hardware address has colons).
 */
export function transparentNetwork({ hns, subnet }: HnsNetwork, adapter: NodeAdapter): HcnDocument {
  return {
    Name: hns.network,
    Type: hns.type,
    NetworkAdapterName: adapter.alias,
    SourceMac: adapter.mac.toLowerCase().replaceAll("-", ":"),
    Subnets: [{ AddressPrefix: formatCidr(subnet), GatewayAddress: formatIp(gatewayIn(subnet)) }],
    ManagementIP: `${formatIp(hns.nodeAddress)}/${adapter.prefixLength}`,
  };
}

/**
 * Not persistent: the agent creates the network at each start of the node, and a copy that Windows keeps would be in
 * its way.
 */
const nonPersistent = 8;

/** A network of type L2Bridge or Overlay, in V2. */
export function switchedNetwork({ hns, subnet }: HnsNetwork, adapter: NodeAdapter): HcnDocument {
  const vsid = hns.vsid === undefined ? {} : { Policies: [{ Type: "VSID", Settings: { IsolationId: hns.vsid } }] };
  const defaultRoute = { NextHop: formatIp(gatewayIn(subnet)), DestinationPrefix: "0.0.0.0/0" };
  return {
    Name: hns.network,
    Type: hns.type,
    Flags: nonPersistent,
    Policies: [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: adapter.alias } }],
    Ipams: [{ Type: "Static", Subnets: [{ IpAddressPrefix: formatCidr(subnet), Routes: [defaultRoute], ...vsid }] }],
    SchemaVersion,
  };
}

/** The wanted endpoint. */
export interface EndpointPlan {
  readonly name: string;
  readonly ipam: CniResult;
  /** As `02:00:5e:10:00:01`; absent: HNS chooses. */
  readonly mac?: string;
  readonly policies: readonly EndpointPolicy[];
}

/**
 * An endpoint, in V2. The network is passed beside the document and in it, because versions of HNS differ in which they
 * read.
 */
export function endpointDocument(networkId: string, { name, ipam, mac, policies }: EndpointPlan): HcnDocument {
  const { nameservers = [], search = [], domain, options = [] } = ipam.dns;
  const routes = ipam.routes.flatMap((route) => {
    const via = gatewayOf(route, ipam.ips);
    return via === undefined ? [] : [{ NextHop: formatIp(via), DestinationPrefix: formatCidr(route.dst) }];
  });
  return {
    Name: name,
    HostComputeNetwork: networkId,
    IpConfigurations: ipam.ips.map(({ address }) => ({
      IpAddress: formatIp(address.ip),
      PrefixLength: address.prefix,
    })),
    Routes: routes,
    Dns: {
      ...(domain === undefined ? {} : { Domain: domain }),
      Search: search,
      ServerList: nameservers,
      Options: options,
    },
    ...(mac === undefined ? {} : { MacAddress: mac.replaceAll(":", "-").toUpperCase() }),
    Policies: policies,
    SchemaVersion,
  };
}

/** On an overlay the MAC is derived from the address, because nobody answers ARP for pods of other nodes. */
export function overlayMac(ip: Ip): string {
  const octets = [24n, 16n, 8n, 0n].map((shift) => ((ip.value >> shift) & 255n).toString(16).padStart(2, "0"));
  return ["0e", "2a", ...octets].join(":");
}

/** The addresses of an endpoint's document. */
export function addressesIn(document: HcnDocument): readonly string[] {
  const listed = document["IpConfigurations"];
  return (Array.isArray(listed) ? listed : []).flatMap((each) =>
    isObject(each) && typeof each["IpAddress"] === "string" ? [each["IpAddress"]] : [],
  );
}

/** An endpoint policy of V2: `{Type, Settings}`. */
export interface EndpointPolicy {
  readonly Type: string;
  readonly Settings: HcnDocument;
}

/** IANA's numbers, as HNS wants them. */
const protocolNumber = { tcp: 6, udp: 17 } as const;

/** All policies of an endpoint: the configured ones, the pod's ports, and those of the overlay. */
export function policiesOf(network: HnsNetwork, portMappings: readonly PortMapping[]): readonly EndpointPolicy[] {
  const { outboundNat, policies, type, nodeAddress } = network.hns;
  const ports = portMappings.map(({ hostPort, containerPort, protocol }) => ({
    Type: "PortMapping",
    Settings: { Protocol: protocolNumber[protocol], InternalPort: containerPort, ExternalPort: hostPort },
  }));
  return [
    ...(outboundNat === undefined ? [] : [{ Type: "OutBoundNAT", Settings: { Exceptions: outboundNat.exceptions } }]),
    ...(type === "Overlay" ? [{ Type: "ProviderAddress", Settings: { ProviderAddress: formatIp(nodeAddress) } }] : []),
    ...policies.map(toV2),
    ...ports,
  ];
}

/** V1's types that have another name in V2. */
const newTypes: Readonly<Record<string, string>> = {
  NAT: "PortMapping",
  ROUTE: "SDNRoute",
  PA: "ProviderAddress",
  PROXY: "L4Proxy",
};

/** V1's fields that have another name in V2, by V1's type. */
const newKeys: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  OutBoundNAT: { ExceptionList: "Exceptions", VIP: "VirtualIP" },
  PA: { PA: "ProviderAddress" },
  PROXY: { ExceptionList: "Exceptions", OutboundNat: "OutboundNAT" },
};

/** A policy as the configuration has it: with `Settings` it goes as it is, flat as in V1 it is rewritten. */
export function toV2(policy: Readonly<Record<string, unknown>>): EndpointPolicy {
  const { Type, Settings, ...flat } = policy;
  const type = String(Type);
  if (typeof Settings === "object" && Settings !== null) return { Type: type, Settings: Settings as HcnDocument };
  const keys = newKeys[type] ?? {};
  const settings = Object.entries(flat).map(([key, value]) => [keys[key] ?? key, toV2Value(type, key, value)]);
  return { Type: newTypes[type] ?? type, Settings: Object.fromEntries(settings) };
}

/** V1 writes the protocol of a NAT as a word. */
function toV2Value(type: string, key: string, value: unknown): unknown {
  if (type !== "NAT" || key !== "Protocol" || typeof value !== "string") return value;
  const word = value.toLowerCase();
  return word === "tcp" || word === "udp" ? protocolNumber[word] : value;
}
