import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../../shared/ip.ts";
import { flowText } from "../../../openflow/mod.ts";
import type { PipelineContext } from "./context.ts";
import { podFlows } from "./pod.ts";
import { tables } from "./tables.ts";

const ip = (text: string) => parseIp(text)!;

const encap: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1"), ip("fd00:10:0:1::1")] },
  tunnel: { ofport: 1, type: "geneve" },
  nodeAddresses: [parseCidr("172.30.0.1/24")!],
  podSubnets: [parseCidr("10.10.1.0/24")!, parseCidr("fd00:10:0:1::/64")!],
  multitenant: true,
};
const mac = "02:00:0a:0a:01:02";
const pod = { ofport: 11, mac, ips: [ip("10.10.1.2"), ip("fd00:10:0:1::2")], vnid: 7 };
const linkLocal = "fe80::aff:fe0a:102";

const flows = (context: Partial<PipelineContext> = {}, of: Partial<typeof pod> = {}): readonly string[] =>
  podFlows({ ...encap, ...context }, { ...pod, ...of }).map(flowText);
const inTable = (name: keyof typeof tables, ...given: Parameters<typeof flows>): readonly string[] =>
  flows(...given).filter((text) => text.startsWith(`table=${tables[name]}, `));

test("into the switch: from the pod's port with its own MAC and addresses, and nothing else", () => {
  expect(inTable("Classifier")).toEqual([
    `table=0, priority=190,in_port=11 actions=set_field:0x2/0xf->reg0,set_field:0x80000000/0x80000000->reg0,goto_table:${tables.SpoofGuard}`,
  ]);
  expect(inTable("ARPSpoofGuard")).toEqual([
    `table=${tables.ARPSpoofGuard}, priority=200,arp,in_port=11,dl_src=${mac},arp_spa=10.10.1.2,arp_sha=${mac} actions=goto_table:${tables.ARPResponder}`,
  ]);
});
