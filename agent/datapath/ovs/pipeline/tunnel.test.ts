import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { flowText } from "../../../protocols/openflow/mod.ts";
import type { PipelineContext, Tunnel } from "./context.ts";
import { peerTunnelFlows, tunnelFlows } from "./tunnel.ts";

const context: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [parseIp("10.10.1.1")!, parseIp("fd00:1::1")!] },
  nodeAddresses: [parseCidr("172.30.0.1/24")!],
  podSubnets: [parseCidr("10.10.1.0/24")!, parseCidr("fd00:1::/64")!],
  multitenant: false,
};

test.each<readonly [Omit<Tunnel, "ofport">, readonly string[]]>([
  [{ type: "geneve" }, ["udp,tp_dst=6081", "udp6,tp_dst=6081"]],
  [{ type: "vxlan" }, ["udp,tp_dst=4789", "udp6,tp_dst=4789"]],
  [{ type: "vxlan", port: 8472 }, ["udp,tp_dst=8472", "udp6,tp_dst=8472"]],
  [{ type: "stt" }, ["tcp,tp_dst=7471", "tcp6,tp_dst=7471"]],
  [{ type: "gre" }, ["ip,nw_proto=47", "ipv6,nw_proto=47"]],
])("what looks like a packet of the tunnel %o goes to no node's kernel", (tunnel, wanted) => {
  const dropped = (more: Partial<PipelineContext>) =>
    tunnelFlows({ ...context, tunnel: { ofport: 1, ...tunnel }, ...more })
      .map(flowText)
      .filter((text) => text.includes("actions=drop"))
      .map((text) =>
        text
          .replace(/.*priority=210,/, "")
          .replace(" actions=drop", "")
          .split(",")
          .sort()
          .join(),
      );
  const by = (...ways: readonly string[]) =>
    wanted.flatMap((text) => ways.map((way) => [`reg0=${way}/0xf0`, ...text.split(",")].sort().join()));
  // To the gateway; and where nodes are met by the uplink, to that.
  expect(dropped({})).toEqual(by("0x20"));
  expect(dropped({ uplink: { ofport: 3, mac: "02:00:00:00:00:01" } })).toEqual(by("0x20", "0x40"));
});

test("where each node has a tunnel of its own nothing is believed that comes out of the one for all", () => {
  const tunnel = { ofport: 7, type: "geneve" } as const;
  const believing = (more: Partial<PipelineContext>): number =>
    tunnelFlows({ ...context, tunnel, ...more }).filter((flow) => flowText(flow).includes("in_port=7")).length;
  expect([believing({}), believing({ tunnelPerPeer: true })]).toEqual([1, 0]);
  expect(peerTunnelFlows(context, 9).map(flowText)).toEqual([expect.stringContaining("in_port=9")]);
});
