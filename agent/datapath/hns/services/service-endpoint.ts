import { type Cidr, contains, formatIp, type Ip, parseCidr } from "../../../../shared/net/ip.ts";
import { isObject } from "../../../../shared/schema/json-fields.ts";
import type { HcnDocument, HcnEndpoint, HcnNetwork } from "../../../protocols/hcn/mod.ts";

/** Other nodes' pods, as an overlay network knows them (policy `RemoteSubnetRoute`). */
export interface RemoteSubnet {
  readonly prefix: Cidr;
  /** The node's own address. */
  readonly provider: string;
}

/** @returns none where the network is no overlay */
export function remoteSubnetsOf({ document }: HcnNetwork): readonly RemoteSubnet[] {
  return policiesIn(document, "RemoteSubnetRoute").flatMap((settings) => {
    const prefix = parseCidr(String(settings["DestinationPrefix"] ?? ""));
    return prefix === undefined ? [] : [{ prefix, provider: String(settings["ProviderAddress"] ?? "") }];
  });
}

/** The node behind which an address of another node is; `undefined`: none that the network knows. */
export function providerOf(ip: Ip, subnets: readonly RemoteSubnet[]): string | undefined {
  const text = formatIp(ip);
  return subnets.find(({ prefix, provider }) => provider === text || contains(prefix, ip))?.provider;
}

/** An endpoint that services need and no pod of this node is: of another node, or of a service's own address. */
export interface ServiceEndpoint {
  readonly ip: string;
  /** As HNS writes it: `02-11-0A-F4-01-09`. */
  readonly mac: string;
  /** On an overlay: the node to which packets go. */
  readonly provider?: string;
  /** `false`: of this node itself, as the source address of an overlay's services. */
  readonly isRemote: boolean;
}

/** Begins the hardware address of endpoints on other nodes, kube-proxy's as ours. */
const conjured = "02-11";

/**
 * Never on a wire: HNS wants one.
 * IPv4: the address. IPv6: its last four bytes, from the last on.
 */
export function conjuredMac({ family, value }: Ip): string {
  const bytes = [24n, 16n, 8n, 0n].map((shift) => Number((value >> shift) & 255n));
  if (family === 6) bytes.reverse();
  return [conjured, ...bytes.map((byte) => byte.toString(16).padStart(2, "0").toUpperCase())].join("-");
}

export const isConjured = ({ isRemote, mac }: HcnEndpoint): boolean => isRemote && mac.startsWith(`${conjured}-`);

const remoteFlag = 1;

export function endpointSettings({ ip, mac, provider, isRemote }: ServiceEndpoint): HcnDocument {
  return {
    IpConfigurations: [{ IpAddress: ip }],
    MacAddress: mac,
    ...(isRemote ? { Flags: remoteFlag } : {}),
    ...(provider === undefined
      ? {}
      : { Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: provider } }] }),
    SchemaVersion: { Major: 2, Minor: 0 },
  };
}

/** Whether an endpoint of ours is as it is to be, as far as HNS says. */
export function isAsWanted({ mac, isRemote, document }: HcnEndpoint, wanted: ServiceEndpoint): boolean {
  const providers = policiesIn(document, "ProviderAddress").map((settings) => settings["ProviderAddress"]);
  return (
    isRemote === wanted.isRemote &&
    (mac === "" || mac.toUpperCase() === wanted.mac.toUpperCase()) &&
    (providers.length === 0 || wanted.provider === undefined || providers.includes(wanted.provider))
  );
}

/** Settings of the policies of a type. */
export function policiesIn(document: HcnDocument, type: string): readonly HcnDocument[] {
  const listed = document["Policies"];
  return (Array.isArray(listed) ? listed : []).flatMap((each) =>
    isObject(each) && each["Type"] === type && isObject(each["Settings"]) ? [each["Settings"]] : [],
  );
}
