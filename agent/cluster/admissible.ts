import {
  type Cidr,
  contains,
  firstOf,
  formatCidr,
  formatIp,
  type Ip,
  lastOf,
  overlap,
  parseCidr,
  sameIp,
} from "../../shared/net/ip.ts";
import { isNodeAddress, nodeAddressRule } from "../../shared/net/node-address.ts";
import { isPodSubnet } from "../config/value-shapes.ts";
import type { ClusterNode } from "./node-registry.ts";

/** A block, and who or what has it. */
export interface ReservedBlock {
  readonly cidr: Cidr;
  /** Completes `touches "10.96.0.0/16", …`. */
  readonly what: string;
}

/** What this node knows of the cluster without any record of another node. */
export interface AdmissionPolicy {
  /**
   * What nodes' subnets are cut from. A family that has none here may be anything that is not too large; one with an
   * empty list no node has.
   */
  readonly networks: Readonly<Partial<Record<4 | 6, readonly ClusterBlock[]>>>;
  /** Where no other node's pods can be. */
  readonly occupied: readonly ReservedBlock[];
  /** The networks that this node's own addresses are in. */
  readonly links: readonly Cidr[];
}

/** A cluster network. */
export interface ClusterBlock {
  readonly cidr: Cidr;
  /** Length of every node's prefix; absent: each has its own. */
  readonly nodePrefix?: number;
}

/** A packet for one of these is never for another node's pod; the rest of what the node sends there has to get where it should. */
const special: readonly ReservedBlock[] = (
  [
    ["0.0.0.0/8", "addresses of no host"],
    ["127.0.0.0/8", "loopback"],
    ["169.254.0.0/16", "link-local addresses, those of a cloud's metadata too"],
    ["224.0.0.0/3", "multicast, reserved addresses and broadcast"],
    ["::/8", "unspecified, loopback and translated addresses"],
    // `virtualServiceIp` of the pipeline; that of IPv4 is link-local.
    ["fc01::aabb:ccdd:eeff/128", "the virtual host of services"],
    ["fe80::/10", "link-local addresses"],
    ["ff00::/8", "multicast"],
  ] as const
).flatMap(([text, what]) => {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : [{ cidr, what }];
});

/** A million addresses, or a site: where nobody has said what the cluster's networks are, one node has no more. */
const shortestPrefix = { 4: 12, 6: 48 } as const;

/** Why nothing may be sent where a record leads, whatever other nodes have; nothing where it may. */
export type Admission = (node: ClusterNode) => string | undefined;

/**
 * One rule for what a registry tells and for what was kept of it, since who writes a registry is not root on every node.
 * A record is judged once: of thousands one changes at a time.
 */
export function admission(around: AdmissionPolicy): Admission {
  const judged = new WeakMap<ClusterNode, { readonly is: string | undefined }>();
  return (node) => {
    const known = judged.get(node) ?? { is: wrongRecord(node, around) };
    judged.set(node, known);
    return known.is;
  };
}

function wrongRecord({ addresses, subnets }: ClusterNode, around: AdmissionPolicy): string | undefined {
  return (
    addresses.map((ip) => wrongAddress(ip, around)).find((is) => is !== undefined) ??
    subnets.map((cidr) => wrongSubnet(cidr, around)).find((is) => is !== undefined)
  );
}

function wrongAddress(ip: Ip, { links }: AdmissionPolicy): string | undefined {
  if (!isNodeAddress(ip)) return `its address "${formatIp(ip)}" is no node's, wanted ${nodeAddressRule}`;
  // What is sent there is for everybody on the link, and no route may lead by way of it.
  const link = links.find((cidr) => ip.family === 4 && cidr.prefix < 31 && contains(cidr, ip));
  const isEnd = link !== undefined && (sameIp(ip, firstOf(link)) || sameIp(ip, lastOf(link)));
  return isEnd ? `its address "${formatIp(ip)}" is of no host in "${networkText(link)}"` : undefined;
}

function wrongSubnet(subnet: Cidr, { networks, occupied }: AdmissionPolicy): string | undefined {
  const its = `its subnet "${formatCidr(subnet)}"`;
  const touched = [...special, ...occupied].find(({ cidr }) => overlap(cidr, subnet));
  if (touched !== undefined) return `${its} touches "${networkText(touched.cidr)}", ${touched.what}`;
  if (!isPodSubnet(subnet)) return `${its} is no network for pods`;
  const known = networks[subnet.ip.family];
  if (known === undefined) {
    const shortest = shortestPrefix[subnet.ip.family];
    return subnet.prefix >= shortest ? undefined : `${its} is too large for one node, wanted /${shortest} or smaller`;
  }
  const network = known.find(({ cidr }) => cidr.prefix <= subnet.prefix && contains(cidr, subnet.ip));
  if (network === undefined) return `${its} is outside of the cluster's networks, ${listOf(known)}`;
  const { nodePrefix = subnet.prefix } = network;
  return nodePrefix === subnet.prefix
    ? undefined
    : `${its} is no node's part of "${formatCidr(network.cidr)}", wanted one of /${nodePrefix}`;
}

const listOf = (known: readonly ClusterBlock[]): string =>
  known.length === 0 ? "of which there are none of that family" : known.map(({ cidr }) => formatCidr(cidr)).join(", ");

const networkText = (cidr: Cidr): string => formatCidr({ ip: firstOf(cidr), prefix: cidr.prefix });
