import { lookup } from "node:dns/promises";
import { retry } from "../../shared/async/backoff.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import {
  bitsOf,
  type Cidr,
  contains,
  type Family,
  firstOf,
  formatCidr,
  formatIp,
  hostBlock,
  type Ip,
  lastOf,
  overlap,
  parseCidr,
  parseIp,
  sameIp,
} from "../../shared/net/ip.ts";
import { isNodeAddress, nodeAddressRule } from "../../shared/net/node-address.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { defaultServiceCidr } from "../config/ovs-config.ts";
import { isPodSubnet } from "../config/values.ts";
import type { ClusterNode } from "./node-registry.ts";
import { registryRetry } from "./registry-health.ts";

/** A block that nodes' subnets must not touch, and why. */
export interface ReservedBlock {
  readonly cidr: Cidr;
  /** Completes `touches "10.96.0.0/16", …`. */
  readonly what: string;
}

/** What this node knows of the cluster from its own configuration. */
export interface AdmissionPolicy {
  /**
   * The networks that nodes' subnets are cut from. Without an entry for a family any subnet of it that is not too large
   * is allowed; with an empty list none is.
   */
  readonly networks: Readonly<Partial<Record<4 | 6, readonly ClusterBlock[]>>>;
  /** Blocks in which no other node's pods can be. */
  readonly occupied: readonly ReservedBlock[];
  /** The networks of this node's own addresses. */
  readonly links: readonly Cidr[];
}

/** A cluster network. */
export interface ClusterBlock {
  readonly cidr: Cidr;
  /** Length of every node's prefix; absent: each has its own. */
  readonly nodePrefix?: number;
}

/** Blocks that are never another node's pods; a record that claimed them would divert this node's other traffic. */
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

/**
 * The largest subnet of a node if the cluster's networks are not configured: a million IPv4 addresses, or an IPv6 site.
 */
const shortestPrefix = { 4: 12, 6: 48 } as const;

/** Answers why a record is refused, regardless of other nodes; nothing if it is accepted. */
export type Admission = (node: ClusterNode) => string | undefined;

/**
 * One rule for records from the registry and from the cache, because write access to a registry must not give root on
 * every node. Results are cached by record: of thousands, one changes at a time.
 */
export function admission(policy: AdmissionPolicy): Admission {
  const judged = new WeakMap<ClusterNode, { readonly is: string | undefined }>();
  return (node) => {
    const known = judged.get(node) ?? { is: wrongRecord(node, policy) };
    judged.set(node, known);
    return known.is;
  };
}

function wrongRecord({ addresses, subnets }: ClusterNode, policy: AdmissionPolicy): string | undefined {
  return (
    addresses.map((ip) => wrongAddress(ip, policy)).find((is) => is !== undefined) ??
    subnets.map((cidr) => wrongSubnet(cidr, policy)).find((is) => is !== undefined)
  );
}

function wrongAddress(ip: Ip, { links }: AdmissionPolicy): string | undefined {
  if (!isNodeAddress(ip)) return `its address "${formatIp(ip)}" is no node's, wanted ${nodeAddressRule}`;
  // The network and broadcast addresses of the link are no node's.
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

/**
 * The policy that follows from this node's configuration.
 * @param links addresses of this node with the length of their network's prefix
 * @param servers addresses of the machines that keep the registry, as far as they are known
 */
export function admissionPolicyOf(
  config: AgentConfig,
  self: ClusterNode,
  links: readonly Cidr[],
  servers: readonly Ip[],
): AdmissionPolicy {
  const networks = { ...networksOf(config, self, 4), ...networksOf(config, self, 6) };
  const blocks = Object.values(networks).flat();
  const { services, ovs } = config;
  const cidrs = services?.cidrs ?? ovs?.services.cidrs ?? [];
  // Where none are balanced the default block counts only if it was configured, since the pods' network may contain it.
  const isSaid = (cidr: Cidr): boolean => services !== undefined || formatCidr(cidr) !== defaultServiceCidr;
  const service = cidrs.filter((cidr) => isSaid(cidr) || !blocks.some((block) => overlap(block.cidr, cidr)));
  const [, ...others] = config.networks;
  const occupied: readonly ReservedBlock[] = [
    ...service.map((cidr) => ({ cidr, what: "where services have their addresses" })),
    ...others.flatMap(({ name, subnets }) =>
      subnets.map((cidr) => ({ cidr, what: `the subnet of this node's network "${name}"` })),
    ),
    ...servers.map((ip) => ({ cidr: hostBlock(ip), what: "where the registry is kept" })),
    // A link that contains a configured cluster network is not reserved as a whole; its single addresses are.
    ...links
      .filter((cidr) => !blocks.some((block) => overlap(block.cidr, cidr)))
      .map((cidr) => ({ cidr, what: "the network that this node's own interface is in" })),
  ];
  // Blocks that contain this node's own pods are not reserved.
  return { networks, occupied: occupied.filter(({ cidr }) => !self.subnets.some((own) => overlap(own, cidr))), links };
}

const encrypts = (ovs: AgentConfig["ovs"]): boolean => ovs !== undefined && ovs.encryption !== "none";

/**
 * The networks that the registry leases from; else the configured cluster networks, if this node's pods lie in them.
 */
function networksOf({ nodes, ovs }: AgentConfig, self: ClusterNode, family: Family): AdmissionPolicy["networks"] {
  const ofFamily = ({ cidr }: ClusterBlock): boolean => cidr.ip.family === family;
  const registry = nodes?.registry;
  if (registry !== undefined && "networks" in registry) {
    const blocks = registry.networks.map(({ cidr, hostBits }) => ({ cidr, nodePrefix: bitsOf(family) - hostBits }));
    return { [family]: blocks.filter(ofFamily) };
  }
  const said = (ovs?.clusterSubnets ?? []).map((cidr) => ({ cidr })).filter(ofFamily);
  const own = self.subnets.filter(({ ip }) => ip.family === family);
  const isWithin = own.length > 0 && own.every(({ ip }) => said.some(({ cidr }) => contains(cidr, ip)));
  // What lies outside of them would leave in clear.
  return isWithin || encrypts(ovs) ? { [family]: said } : {};
}

/** `https://[fd00::1]:2379` has `fd00::1`. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, "") : "");

/** The hosts of URLs that are addresses and need no look-up. */
export const literalAddresses = (urls: readonly string[]): readonly Ip[] =>
  urls.flatMap((url) => parseIp(hostOf(url)) ?? []);

/**
 * Resolves host names too, and retries until all are known, because a node may start before it can reach its name
 * server.
 * @throws what the signal was aborted with
 */
export async function resolvedAddresses(
  urls: readonly string[],
  logger: Logger,
  signal: AbortSignal,
): Promise<readonly Ip[]> {
  const names = [...new Set(urls.map(hostOf))].filter((host) => host !== "" && parseIp(host) === undefined);
  if (names.length === 0) return literalAddresses(urls);
  const problem = new LogOnChange(logger);
  const message = "the registry's names cannot be resolved, and records of nodes are not held against them";
  const failed = (caught: unknown): void => problem.log(message, CniError.from(caught, "join").message);
  const look = async (): Promise<readonly Ip[]> => {
    const found = await Promise.all(names.map((name) => lookup(name, { all: true })));
    return found.flat().flatMap(({ address }) => parseIp(address) ?? []);
  };
  return [...literalAddresses(urls), ...(await retry(look, { ...registryRetry, signal, failed }))];
}
