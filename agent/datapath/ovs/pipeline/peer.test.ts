import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import type { ClusterNode } from "../../../cluster/node-registry.ts";
import { flowText } from "../../../protocols/openflow/mod.ts";
import type { PipelineContext } from "./context.ts";
import { peerFlows, wayTo } from "./peer.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

const encap: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1")] },
  tunnel: { ofport: 1, type: "geneve" },
  nodeAddresses: [cidr("172.30.0.1/24")],
  podSubnets: [cidr("10.10.1.0/24")],
  multitenant: true,
};
/** What the node's kernel would send on for that node's pods, nobody knows of which project. */
const strangers = "table=40, priority=205,ip,in_port=2,nw_src=10.10.2.0/24 actions=drop";
const uplink = { ofport: 3, mac: "02:00:ac:1e:00:01" };
const peer: ClusterNode = {
  name: "n2",
  uid: "2",
  addresses: [ip("172.30.0.2")],
  mac: "02:00:ac:1e:00:02",
  subnets: [cidr("10.10.2.0/24")],
};

test("through the tunnel: an answer for its gateway's MAC, and the way to its pods with their project", () => {
  expect(peerFlows(encap, peer).map(flowText)).toEqual([
    "table=140, priority=200,ip,nw_dst=10.10.2.0/24 actions=set_field:0e:00:0a:0a:01:01->eth_src," +
      "set_field:aa:bb:cc:dd:ee:ff->eth_dst,set_field:172.30.0.2->tun_dst," +
      "move:NXM_NX_REG10[]->NXM_NX_TUN_ID[0..31],set_field:0x10/0xf0->reg0,goto_table:150",
    "table=20, priority=200,arp,arp_tpa=10.10.2.1,arp_op=1 actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]," +
      "set_field:aa:bb:cc:dd:ee:ff->eth_src,set_field:2->arp_op,move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[]," +
      "set_field:aa:bb:cc:dd:ee:ff->arp_sha,move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],set_field:10.10.2.1->arp_spa,IN_PORT",
    strangers,
  ]);
});

test("by the uplink: the peer's MAC, its answers, and the port of that MAC", () => {
  expect(peerFlows({ ...encap, mode: "noEncap", uplink, multitenant: false }, peer).map(flowText)).toEqual([
    "table=140, priority=200,ip,nw_dst=10.10.2.0/24 actions=set_field:02:00:ac:1e:00:01->eth_src," +
      "set_field:02:00:ac:1e:00:02->eth_dst,set_field:0x40/0xf0->reg0,goto_table:150",
    expect.stringContaining("arp_tpa=10.10.2.1"),
    "table=140, priority=200,ct_state=+rpl+trk,ip,nw_dst=172.30.0.2 actions=set_field:02:00:ac:1e:00:01->eth_src," +
      "set_field:02:00:ac:1e:00:02->eth_dst,set_field:0x40/0xf0->reg0,goto_table:150",
    "table=180, priority=200,reg0=0x40/0xf0,dl_dst=02:00:ac:1e:00:02 actions=set_field:0x3->reg1,set_field:0x200000/0x600000->reg0,goto_table:200",
  ]);
});

test("the ways by mode, link, MAC and family", () => {
  const [subnet] = peer.subnets;
  const way = (context: Partial<PipelineContext>, of: Partial<ClusterNode> = {}) =>
    wayTo({ ...encap, ...context }, { ...peer, ...of }, subnet!)?.t;
  const far = { addresses: [ip("172.31.0.2")] };
  const { mac: _, ...unknown } = peer;
  expect([way({}), way({ uplink }), way({}, far)]).toEqual(["tunnel", "tunnel", "tunnel"]);
  expect([way({ mode: "noEncap" }), way({ mode: "noEncap", uplink })]).toEqual(["gateway", "uplink"]);
  expect(way({ mode: "noEncap", uplink }, far)).toBe("gateway");
  expect(wayTo({ ...encap, mode: "noEncap", uplink }, unknown, subnet!)?.t).toBe("gateway");
  expect([way({ mode: "hybrid" }), way({ mode: "hybrid" }, far)]).toEqual(["gateway", "tunnel"]);
  expect([way({ mode: "hybrid", uplink }), way({ mode: "hybrid", uplink }, far)]).toEqual(["uplink", "tunnel"]);
  // IPv4 first for the tunnel's own end, and none where the nodes have no family in common.
  const both = { nodeAddresses: [cidr("fd00:30::1/64"), cidr("172.30.0.1/24")] };
  const either = { addresses: [ip("fd00:30::2"), ip("172.30.0.2")] };
  expect(wayTo({ ...encap, ...both }, { ...peer, ...either }, subnet!)).toEqual({
    t: "tunnel",
    remote: ip("172.30.0.2"),
  });
  const six = { addresses: [ip("fd00:30::2")] };
  expect(wayTo({ ...encap, ...both }, { ...peer, ...six }, subnet!)).toEqual({ t: "tunnel", remote: ip("fd00:30::2") });
  expect(flowText(peerFlows({ ...encap, ...both }, { ...peer, ...six })[0]!)).toContain("fd00:30::2->tun_ipv6_dst");
  expect(peerFlows(encap, { ...peer, ...six }).map(flowText)).toEqual([strangers]);
  expect(peerFlows({ ...encap, multitenant: false }, { ...peer, ...six })).toEqual([]);
});
