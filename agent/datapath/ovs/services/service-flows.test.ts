import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../../../../test/fakes/service-port.ts";
import { flowText, groupText } from "../../../protocols/openflow/mod.ts";
import type { ServicePort } from "../../services.ts";
import type { FlowSet } from "../program/flow-set.ts";
import { servedPort } from "./served-port.ts";
import { hairpinFlowSet, noServiceFlowSet, serviceFlowSet } from "./service-flows.ts";

const ip = (text: string) => parseIp(text)!;
const textOf = ({ groups = [], flows }: FlowSet) => [...groups.map(groupText), ...flows.map(flowText)];

const [first, second] = [endpointAt("10.10.1.2"), endpointAt("10.10.2.2", 8080, 300)];
const web = servicePort({ endpoints: [first, second] });
const context = {
  podSubnets: [],
  gateway: { ofport: 2, mac: "02:00:00:00:00:01", addresses: [ip("10.10.1.1"), ip("fd00:10:1::1")] },
  nodeAddresses: [parseCidr("172.30.0.1/24")!],
};

/** Numbers are given in the order in which they are asked for, from 7 on. */
function flowSetOf(given: ServicePort): FlowSet {
  const known: string[] = [];
  const number = (name: string): number => 7 + (known.includes(name) ? known.indexOf(name) : known.push(name) - 1);
  return serviceFlowSet(servedPort(given, true), number, context);
}

test("a service is one flow that meets it, one group that chooses, and one flow for each endpoint", () => {
  const part = flowSetOf(web);
  expect([part.category, part.object]).toEqual([3, 7]);
  expect(textOf(part)).toEqual([
    "group_id=7,type=select" +
      ",bucket=bucket_id:0,weight:100,actions=set_field:0xa0a0102->reg3,set_field:0x1f90/0xffff->reg4,resubmit(,120)" +
      ",bucket=bucket_id:1,weight:300,actions=set_field:0xa0a0202->reg3,set_field:0x1f90/0xffff->reg4,resubmit(,120)",
    "table=110, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.96.0.10,tp_dst=80 actions=" +
      "set_field:0x200/0x200->reg0,set_field:0x20000/0x70000->reg4,set_field:0x7->reg7,group:7",
    "table=120, priority=200,tcp,reg3=0xa0a0102,reg4=0x21f90/0x7ffff,reg7=0x7 actions=ct(commit,table=130,zone=65520," +
      "nat(dst=10.10.1.2:8080),exec(set_field:0x10/0x10->ct_mark,move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3]))",
    "table=120, priority=200,tcp,reg3=0xa0a0202,reg4=0x21f90/0x7ffff,reg7=0x7 actions=ct(commit,table=130,zone=65520," +
      "nat(dst=10.10.2.2:8080),exec(set_field:0x10/0x10->ct_mark,move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3]))",
  ]);
});

test("one that keeps its clients' endpoints passes its table once more, to learn", () => {
  const [group = "", met = "", learning = ""] = textOf(flowSetOf({ ...web, affinitySeconds: 600 }));
  expect(group).toMatch(/^group_id=7,type=select,selection_method=hash,fields=ip_src,bucket=.*resubmit\(,110\)/);
  expect(met).toContain("set_field:0x30000/0x70000->reg4");
  expect(learning).toBe(
    "table=110, priority=190,tcp,reg4=0x30000/0x70000,nw_dst=10.96.0.10,tp_dst=80 actions=" +
      "learn(table=100,hard_timeout=600,priority=200,delete_learned,cookie=0x30100000007,limit=20000," +
      "eth_type=0x800,nw_proto=6,NXM_OF_TCP_DST[],NXM_OF_IP_DST[],NXM_OF_IP_SRC[]," +
      "load:NXM_NX_REG3[]->NXM_NX_REG3[],load:NXM_NX_REG4[0..15]->NXM_NX_REG4[0..15]," +
      "load:0x2->NXM_NX_REG4[16..18],load:0x1->NXM_NX_REG0[9],load:0x7->NXM_NX_REG7[])," +
      "set_field:0x20000/0x70000->reg4,goto_table:120",
  );
});

test("without endpoints it refuses, or drops if there are others, as addresses do that no service has", () => {
  const refusing = "actions=set_field:0x4000/0x4000->reg0,goto_table:120";
  expect(textOf(flowSetOf(servicePort({ affinitySeconds: 600 })))).toEqual([
    `table=110, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.96.0.10,tp_dst=80 ${refusing}`,
  ]);
  const elsewhere = servicePort({ cluster: [first], external: [first] });
  expect(textOf(flowSetOf(elsewhere))).toEqual([
    "table=110, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.96.0.10,tp_dst=80 actions=drop",
  ]);
  expect(textOf(noServiceFlowSet([parseCidr("10.96.0.0/16")!, parseCidr("fd00:96::/112")!]))).toEqual([
    "table=110, priority=190,ip,reg4=0x10000/0x70000,nw_dst=10.96.0.0/16 actions=drop",
    "table=110, priority=190,ipv6,reg4=0x10000/0x70000,ipv6_dst=fd00:96::/112 actions=drop",
  ]);
});

test("IPv6 and the other protocols have the same in their own fields", () => {
  const dns = servicePort({ clusterIp: "fd00:96::a", endpoints: [endpointAt("fd10::2", 53)] });
  for (const protocol of ["udp", "sctp"] as const) {
    const [, met, translation] = textOf(flowSetOf({ ...dns, protocol }));
    expect(met).toMatch(new RegExp(`,${protocol}6,.*ipv6_dst=fd00:96::a,tp_dst=80 `));
    expect(translation).toContain("ct(commit,table=130,zone=65510,nat(dst=[fd10::2]:53),");
  }
});

test("a pod that reaches itself leaves under another address where it came in", () => {
  expect(textOf(hairpinFlowSet(ip("10.10.1.2")))).toEqual([
    "table=160, priority=190,ct_state=+new+trk,ct_mark=0x10/0x10,ip,reg0=0x3/0xf,nw_src=10.10.1.2,nw_dst=10.10.1.2 " +
      "actions=ct(commit,table=170,zone=65520,exec(set_field:0x20/0x20->ct_mark,set_field:0x40/0x40->ct_mark))",
    "table=160, priority=190,ct_state=+new+trk,ct_mark=0x10/0x10,ip,reg0=0x2/0xf,nw_src=10.10.1.2,nw_dst=10.10.1.2 " +
      "actions=ct(commit,table=170,zone=65520,exec(set_field:0x20/0x20->ct_mark))",
  ]);
});

/** The flows of table 110 that meet packets: match and group. */
const meetings = (given: ServicePort): readonly string[] =>
  textOf(flowSetOf(given)).flatMap((text) => {
    const found = /^table=110, (priority=\d+),tcp,(\S+) actions=.*?(?:group:(\d+)|drop)$/.exec(text);
    return found === null ? [] : [`${found[1]} ${found[2]} ${found[3] ?? "drop"}`];
  });

test("at other places the same group chooses, unless a policy tells who may answer others", () => {
  const places = { nodePort: 30080, externalIps: ["192.0.2.1"], ingressIps: ["192.0.2.2"] };
  const [node, external, ingress] = [
    "reg4=0x90000/0xf0000,tp_dst=30080",
    "reg4=0x10000/0x70000,nw_dst=192.0.2.1,tp_dst=80",
    "reg4=0x10000/0x70000,nw_dst=192.0.2.2,tp_dst=80",
  ];
  const clusterIp = "priority=200 reg4=0x10000/0x70000,nw_dst=10.96.0.10,tp_dst=80 7";
  expect(meetings(servicePort({ ...places, endpoints: [first] }))).toEqual([
    clusterIp,
    `priority=200 ${ingress} 7`,
    `priority=200 ${external} 7`,
    `priority=200 ${node} 7`,
  ]);
  const fromOutside = (place: string): string =>
    place.replace("=0x9", "=0x809").replace("/0xf", "/0x80f").replace("=0x10000/0x7", "=0x8010000/0x807");
  const local = servicePort({ ...places, endpoints: [first, second], external: [first] });
  expect(meetings(local)).toEqual([
    clusterIp,
    ...[ingress, external, node].flatMap((place) => [
      `priority=200 ${place} 7`,
      `priority=210 ${fromOutside(place)} 8`,
    ]),
  ]);
  expect(meetings({ ...local, external: [] })).toContain(`priority=210 ${fromOutside(node)} drop`);
  expect(meetings({ ...local, external: [] })).toContain(`priority=200 ${node} 7`);
});

test("a load balancer's address is met from its source ranges alone, and from the node where they hold an address of it", () => {
  const ranged = servicePort({ ingressIps: ["192.0.2.2"], endpoints: [first] });
  const passing = (...ranges: readonly string[]): readonly string[] =>
    textOf(flowSetOf({ ...ranged, sourceRanges: ranges.map((range) => parseCidr(range)!) })).filter((text) =>
      text.startsWith("table=90,"),
    );
  const select = "actions=resubmit(,95),resubmit(,100),resubmit(,110)";
  expect(passing("198.51.100.0/24", "198.51.100.7/24", "::/0")).toEqual([
    "table=90, priority=190,tcp,nw_dst=192.0.2.2,tp_dst=80 actions=drop",
    `table=90, priority=200,tcp,nw_src=198.51.100.0/24,nw_dst=192.0.2.2,tp_dst=80 ${select}`,
  ]);
  expect(passing("172.30.0.1/32")).toEqual([
    "table=90, priority=190,tcp,nw_dst=192.0.2.2,tp_dst=80 actions=drop",
    `table=90, priority=200,tcp,nw_src=172.30.0.1,nw_dst=192.0.2.2,tp_dst=80 ${select}`,
    `table=90, priority=200,tcp,reg0=0x2/0xf,reg4=0x10000000/0x10000000,nw_dst=192.0.2.2,tp_dst=80 ${select}`,
  ]);
  expect(passing()).toHaveLength(1);
});

test("each place remembers its clients by itself, and the list that they had their endpoint from", () => {
  const places = { nodePort: 30080, affinitySeconds: 60 } as const;
  const learning = textOf(flowSetOf(servicePort({ ...places, endpoints: [first, second], external: [first] }))).filter(
    (text) => text.includes("learn("),
  );
  const said = learning.map((text) => [
    /reg4=(\S+?),/.exec(text)?.[1],
    /reg7=(\w+),tp|reg7=(\w+),nw/.exec(text)?.[1],
    /cookie=(\w+)/.exec(text)?.[1],
    /load:(\w+)->NXM_NX_REG7/.exec(text)?.[1],
  ]);
  expect(said).toEqual([
    ["0x30000/0x70000", undefined, "0x30100000007", "0x7"],
    ["0xb0000/0xf0000", "0x7", "0x30100000009", "0x7"],
    ["0xb0000/0xf0000", "0x8", "0x30100000009", "0x8"],
  ]);
});
