import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { type Flow, flowText } from "../../../protocols/openflow/mod.ts";
import type { PipelineContext } from "./context.ts";
import { readCookie } from "./cookie.ts";
import { baseFlows, peerFlows, podFlows } from "./mod.ts";
import { tables } from "./tables.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

const node: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1"), ip("fd00:10:1::1")] },
  tunnel: { ofport: 1, type: "geneve" },
  nodeAddresses: [cidr("172.30.0.1/24"), cidr("fd00:30::1/64")],
  podSubnets: [cidr("10.10.1.0/24"), cidr("fd00:10:1::/64")],
  multitenant: false,
};
const { tunnel: _, ...withoutTunnel } = node;
const uplink = { ofport: 3, mac: "02:00:ac:1e:00:01" };

const contexts = {
  encap: { ...node, nodePorts: { addresses: [ip("172.30.0.1"), ip("fd00:30::1")], refuses: true } },
  "encap, one family, projects apart, metered": {
    ...node,
    tunnel: { ofport: 1, type: "vxlan", port: 8472 },
    gateway: { ...node.gateway, addresses: [ip("10.10.1.1")] },
    nodeAddresses: [cidr("172.30.0.1/24")],
    podSubnets: [cidr("10.10.1.0/24")],
    multitenant: true,
    metered: true,
  },
  noEncap: { ...withoutTunnel, mode: "noEncap" },
  "hybrid by the uplink": { ...node, mode: "hybrid", uplink },
  networkPolicyOnly: { ...withoutTunnel, mode: "networkPolicyOnly", podSubnets: [] },
} as const satisfies Record<string, PipelineContext>;

const pod = { ofport: 11, mac: "0a:00:0a:0a:01:02", ips: [ip("10.10.1.2"), ip("fd00:10:1::2")], vnid: 11 };
/** On the node's link. */
const peer = {
  name: "n2",
  uid: "2",
  addresses: [ip("172.30.0.2"), ip("fd00:30::2")],
  mac: "02:00:ac:1e:00:02",
  subnets: [cidr("10.10.2.0/24"), cidr("fd00:10:2::/64")],
};

const nameOf = new Map(Object.entries(tables).map(([name, number]) => [number as number, name]));

/** Table by table, in the order in which a packet meets them; in each the highest priority first. */
function text(flows: readonly Flow[]): string {
  const inTables = Map.groupBy(flows, ({ table }) => table);
  const sections = [...inTables]
    .sort(([a], [b]) => a - b)
    .map(([table, own]) => {
      const lines = own
        .map((one) => ({ priority: one.priority, line: flowText(one).replace(`table=${table}, `, "") }))
        .sort((a, b) => b.priority - a.priority || (a.line < b.line ? -1 : 1));
      return [`# ${nameOf.get(table) ?? "no table of ours"} (${table})`, ...lines.map(({ line }) => line), ""].join(
        "\n",
      );
    });
  return sections.join("\n");
}

/**
 * Every flow, word for word: what a real switch makes of them is tried in `test/overlay`; here nothing gets lost or other
 * by the way. Who means to change them writes the files anew (`vitest -u`) and reads what has become other.
 */
test.each(Object.entries(contexts))("the flows of a node: %s", async (name, context) => {
  const flows = [...baseFlows(context), ...podFlows(context, pod), ...peerFlows(context, peer)];
  expect(new Set(flows.map(({ cookie }) => readCookie(cookie).round))).toEqual(new Set([0]));
  await expect(text(flows)).toMatchFileSnapshot(`flows/${name.replaceAll(/[ ,]+/g, "-")}.txt`);
});
