import type { ClusterNode } from "../../agent/cluster/node-registry.ts";
import type { PipelineContext } from "../../agent/datapath/ovs/pipeline/context.ts";
import { baseFlows, peerFlows, podFlows } from "../../agent/datapath/ovs/pipeline/mod.ts";
import type { Flow } from "../../agent/protocols/openflow/mod.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { ports } from "./pipeline-bridge.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

export const macs = {
  gateway: "0e:00:0a:0a:01:01",
  uplink: "02:00:ac:1e:00:01",
  peer: "02:00:ac:1e:00:02",
  pod1: "0a:00:0a:0a:01:02",
  pod2: "0a:00:0a:0a:01:03",
  virtual: "aa:bb:cc:dd:ee:ff",
} as const;

/** Node 1 of a cluster of both families: pods in 10.10.1.0/24 and fd00:10:1::/64, itself 172.30.0.1. */
const node: PipelineContext = {
  mode: "encap",
  gateway: { ofport: ports.gw0, mac: macs.gateway, addresses: [ip("10.10.1.1"), ip("fd00:10:1::1")] },
  tunnel: { ofport: ports.tun0, type: "geneve" },
  nodeAddresses: [cidr("172.30.0.1/24"), cidr("fd00:30::1/64")],
  podSubnets: [cidr("10.10.1.0/24"), cidr("fd00:10:1::/64")],
  multitenant: false,
};
const { tunnel: _, ...withoutTunnel } = node;
const uplink = { ofport: ports.ul0, mac: macs.uplink };

export const contexts = {
  encap: node,
  multitenant: { ...node, multitenant: true },
  encapWithUplink: { ...node, uplink },
  noEncap: { ...withoutTunnel, mode: "noEncap" },
  noEncapWithUplink: { ...withoutTunnel, mode: "noEncap", uplink },
  hybrid: { ...node, mode: "hybrid" },
  hybridWithUplink: { ...node, mode: "hybrid", uplink },
  networkPolicyOnly: { ...withoutTunnel, mode: "networkPolicyOnly", podSubnets: [] },
} as const satisfies Record<string, PipelineContext>;

/** Node 2 is on node 1's link, node 3 behind a router. */
export const peers: readonly ClusterNode[] = [
  {
    name: "n2",
    uid: "2",
    addresses: [ip("172.30.0.2"), ip("fd00:30::2")],
    mac: macs.peer,
    subnets: [cidr("10.10.2.0/24"), cidr("fd00:10:2::/64")],
  },
  {
    name: "n3",
    uid: "3",
    addresses: [ip("172.31.0.3"), ip("fd00:31::3")],
    mac: "02:00:ac:1f:00:03",
    subnets: [cidr("10.10.3.0/24"), cidr("fd00:10:3::/64")],
  },
];

export const pods = {
  pod1: { ofport: ports.pod1, mac: macs.pod1, ips: [ip("10.10.1.2"), ip("fd00:10:1::2")], vnid: 11 },
  pod2: { ofport: ports.pod2, mac: macs.pod2, ips: [ip("10.10.1.3"), ip("fd00:10:1::3")], vnid: 12 },
};

/** All flows of node 1 with its two pods and its two peers. */
export const nodeFlows = (context: PipelineContext, local = Object.values(pods)): readonly Flow[] => [
  ...baseFlows(context),
  ...local.flatMap((pod) => podFlows(context, pod)),
  ...peers.flatMap((peer) => peerFlows(context, peer)),
];

export type Version = 4 | 6;

/** Addresses by who has them. */
const addresses = {
  pod1: { 4: "10.10.1.2", 6: "fd00:10:1::2" },
  pod2: { 4: "10.10.1.3", 6: "fd00:10:1::3" },
  absentPod: { 4: "10.10.1.99", 6: "fd00:10:1::99" },
  gateway: { 4: "10.10.1.1", 6: "fd00:10:1::1" },
  node: { 4: "172.30.0.1", 6: "fd00:30::1" },
  peer: { 4: "172.30.0.2", 6: "fd00:30::2" },
  peerPod: { 4: "10.10.2.9", 6: "fd00:10:2::9" },
  farPod: { 4: "10.10.3.9", 6: "fd00:10:3::9" },
  outside: { 4: "198.51.100.1", 6: "2001:db8::1" },
  virtual: { 4: "169.254.0.253", 6: "fc01::aabb:ccdd:eeff" },
} as const;
export type Host = keyof typeof addresses;

export const addressOf = (host: Host, version: Version): string => addresses[host][version];

/** A packet in ovs-ofctl's notation. @param at the port that it comes in by @param macsOf its two MACs @param more other fields */
export function packet(
  version: Version,
  at: keyof typeof ports | "LOCAL",
  [from, to]: readonly [Host, Host],
  macsOf: readonly [string, string],
  more = "",
): string {
  const [type, field] = version === 4 ? ["tcp", "nw"] : ["tcp6", "ipv6"];
  const fields = [
    `in_port=${at},${type},dl_src=${macsOf[0]},dl_dst=${macsOf[1]}`,
    `${field}_src=${addressOf(from, version)},${field}_dst=${addressOf(to, version)},nw_ttl=64,tcp_dst=80`,
  ];
  return [...fields, more].filter((part) => part !== "").join(",");
}
