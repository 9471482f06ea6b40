import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { flowText, groupText } from "../../../protocols/openflow/mod.ts";
import type { FlowSet } from "../program/flow-set.ts";
import type { Service } from "./service.ts";
import { hairpinFlowSet, noServiceFlowSet, serviceFlowSet } from "./service-flows.ts";

const ip = (text: string) => parseIp(text)!;
const textOf = ({ groups = [], flows }: FlowSet) => [...groups.map(groupText), ...flows.map(flowText)];

const web: Service = {
  key: "default/web:http",
  clusterIp: ip("10.96.0.10"),
  protocol: "tcp",
  port: 80,
  endpoints: [
    { ip: ip("10.10.1.2"), port: 8080, weight: 100 },
    { ip: ip("10.10.2.2"), port: 8080, weight: 300 },
  ],
};

test("a service is one flow that meets it, one group that chooses, and one flow for each endpoint", () => {
  const part = serviceFlowSet(web, 7);
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
  const [group = "", met = "", learning = ""] = textOf(serviceFlowSet({ ...web, affinitySeconds: 600 }, 7));
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

test("without endpoints it drops, as addresses do that no service has", () => {
  expect(textOf(serviceFlowSet({ ...web, endpoints: [], affinitySeconds: 600 }, 7))).toEqual([
    "table=110, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.96.0.10,tp_dst=80 actions=drop",
  ]);
  expect(textOf(noServiceFlowSet([parseCidr("10.96.0.0/16")!, parseCidr("fd00:96::/112")!]))).toEqual([
    "table=110, priority=190,ip,reg4=0x10000/0x70000,nw_dst=10.96.0.0/16 actions=drop",
    "table=110, priority=190,ipv6,reg4=0x10000/0x70000,ipv6_dst=fd00:96::/112 actions=drop",
  ]);
});

test("IPv6 and the other protocols have the same in their own fields", () => {
  const dns = { ...web, clusterIp: ip("fd00:96::a"), endpoints: [{ ip: ip("fd10::2"), port: 53, weight: 1 }] };
  for (const protocol of ["udp", "sctp"] as const) {
    const [, met, translation] = textOf(serviceFlowSet({ ...dns, protocol }, 7));
    expect(met).toMatch(new RegExp(`,${protocol}6,.*ipv6_dst=fd00:96::a,tp_dst=80 `));
    expect(translation).toContain("ct(commit,table=130,zone=65510,nat(dst=[fd10::2]:53),");
  }
});

test("a pod that reaches itself leaves under another address where it came in", () => {
  expect(textOf(hairpinFlowSet(ip("10.10.1.2")))).toEqual([
    "table=160, priority=190,ct_state=+new+trk,ct_mark=0x10/0x10,ip,nw_src=10.10.1.2,nw_dst=10.10.1.2 " +
      "actions=ct(commit,table=170,zone=65520,exec(set_field:0x20/0x20->ct_mark,set_field:0x40/0x40->ct_mark))",
  ]);
});
