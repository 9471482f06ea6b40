import { formatIp } from "../../../shared/net/ip.ts";
import type { HcnDocument } from "../../protocols/hcn/mod.ts";
import type { PortMapping } from "../datapath.ts";
import type { HnsNetwork } from "./options.ts";

/** An endpoint policy of V2: `{Type, Settings}`. */
export interface EndpointPolicy {
  readonly Type: string;
  readonly Settings: HcnDocument;
}

/** IANA's numbers, as HNS wants them. */
const protocolNumber = { tcp: 6, udp: 17 } as const;

/** Everything that one endpoint of the network gets: what the configuration says, the pod's ports, the overlay's own. */
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
