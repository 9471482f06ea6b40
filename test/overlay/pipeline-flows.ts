import {
  bits,
  type Flow,
  flow,
  load,
  match,
  move,
  output,
  outputTo,
  Port,
  resubmit,
  setField,
  throughMeter,
  whole,
} from "../../agent/protocols/openflow/mod.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { controller, decTtl, note, popVlan, pushVlan } from "../support/openflow-requests.ts";

import { serviceFlows, trackingFlows } from "./service-flows.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;
const virtualMac = "aa:bb:cc:dd:ee:ff";
const local = { table: 0 } as const;

/** The meter that some flows name has to be there. */
export const namedMeter = 256;

/** The start of a packet's way: what it is, and where it comes from. */
const classification: readonly (readonly [Flow, string])[] = [
  [flow({ ...local, priority: 0 }), "priority=0 actions=drop"],
  [flow({ ...local, actions: [output(Port.NORMAL)] }), "actions=NORMAL"],
  [
    flow({ ...local, priority: 200, match: match().protocol("ipv6").build(), actions: [resubmit(3)] }),
    "priority=200,ipv6 actions=resubmit(,3)",
  ],
  [
    flow({
      table: 3,
      priority: 210,
      cookie: 0x0001_0200_0000_0007n,
      match: match().protocol("ip").set("in_port", 32769).cidr("ip_src", cidr("10.10.1.1/32")).build(),
      actions: [load(bits("reg0", 0, 3), 2), load(bits("reg4", 28), 1), resubmit(4)],
    }),
    "cookie=0x1020000000007, table=3, priority=210,ip,in_port=32769,nw_src=10.10.1.1 " +
      "actions=set_field:0x2/0xf->reg0,set_field:0x10000000/0x10000000->reg4,resubmit(,4)",
  ],
  [
    flow({ table: 3, priority: 200, match: match().set("in_port", Port.LOCAL).build(), actions: [output(32770)] }),
    "table=3, priority=200,in_port=LOCAL actions=output:32770",
  ],
  [
    flow({
      table: 3,
      priority: 199,
      match: match().masked("pkt_mark", 0x80000000, 0x80000000).set("in_port", 5).build(),
      actions: [setField("pkt_mark", 0x21, 0xff), output(Port.LOCAL)],
    }),
    "table=3, priority=199,pkt_mark=0x80000000/0x80000000,in_port=5 actions=set_field:0x21/0xff->pkt_mark,LOCAL",
  ],
  [
    flow({
      table: 4,
      priority: 200,
      match: match()
        .protocol("ip")
        .set("in_port", 11)
        .set("eth_src", "0a:00:0a:0a:01:02")
        .source(ip("10.10.1.2"))
        .build(),
      actions: [resubmit(5)],
    }),
    "table=4, priority=200,ip,in_port=11,dl_src=0a:00:0a:0a:01:02,nw_src=10.10.1.2 actions=resubmit(,5)",
  ],
  [
    flow({
      table: 4,
      priority: 199,
      match: match()
        .protocol("arp")
        .set("arp_spa", ip("10.10.1.2"))
        .masked("arp_sha", "00:00:0a:0a:01:02", "00:00:ff:ff:ff:ff")
        .build(),
      actions: [resubmit(2)],
    }),
    "table=4, priority=199,arp,arp_spa=10.10.1.2,arp_sha=00:00:0a:0a:01:02/00:00:ff:ff:ff:ff actions=resubmit(,2)",
  ],
  [
    flow({
      table: 2,
      priority: 200,
      match: match().protocol("arp").set("arp_op", 1).set("arp_tpa", ip("10.10.2.1")).build(),
      actions: [
        move(whole("eth_src"), whole("eth_dst")),
        setField("eth_src", virtualMac),
        setField("arp_op", 2),
        move(whole("arp_sha"), whole("arp_tha")),
        setField("arp_sha", virtualMac),
        move(whole("arp_spa"), whole("arp_tpa")),
        move(whole("arp_tpa"), whole("reg2")),
        setField("arp_spa", ip("10.10.2.1")),
        output(Port.IN_PORT),
      ],
    }),
    "table=2, priority=200,arp,arp_tpa=10.10.2.1,arp_op=1 actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]," +
      "set_field:aa:bb:cc:dd:ee:ff->eth_src,set_field:2->arp_op,move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[]," +
      "set_field:aa:bb:cc:dd:ee:ff->arp_sha,move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[]," +
      "move:NXM_OF_ARP_TPA[]->NXM_NX_REG2[],set_field:10.10.2.1->arp_spa,IN_PORT",
  ],
];

/** Where a packet goes, and how it leaves. */
const leaving: readonly (readonly [Flow, string])[] = [
  [
    flow({
      table: 16,
      priority: 200,
      match: match().protocol("ip").cidr("ip_dst", cidr("10.10.2.0/24")).build(),
      actions: [
        setField("eth_src", "0e:00:0a:0a:01:01"),
        setField("eth_dst", virtualMac),
        setField("tun_dst", ip("172.30.0.2")),
        setField("tun_id", 0x2a),
        load(bits("reg0", 4, 7), 1),
        resubmit(18),
      ],
    }),
    "table=16, priority=200,ip,nw_dst=10.10.2.0/24 actions=set_field:0e:00:0a:0a:01:01->eth_src," +
      "set_field:aa:bb:cc:dd:ee:ff->eth_dst,set_field:172.30.0.2->tun_dst,set_field:0x2a->tun_id," +
      "set_field:0x10/0xf0->reg0,resubmit(,18)",
  ],
  [
    flow({
      table: 16,
      priority: 100,
      match: match()
        .protocol("ip")
        .set("tun_id", 0x2a)
        .set("tun_src", ip("172.30.0.2"))
        .cidr("tun_dst", cidr("172.30.0.0/24"))
        .build(),
      actions: [move(bits("tun_id", 0, 31), whole("reg0")), setField("tun_ipv6_dst", ip("fd00::9")), output(1)],
    }),
    "table=16, priority=100,ip,tun_id=0x2a,tun_src=172.30.0.2,tun_dst=172.30.0.0/24 actions=" +
      "move:NXM_NX_TUN_ID[0..31]->NXM_NX_REG0[],set_field:fd00::9->tun_ipv6_dst,output:1",
  ],
  [
    flow({
      table: 16,
      priority: 99,
      match: match()
        .protocol("ipv6")
        .set("tun_ipv6_src", ip("fd00::1"))
        .cidr("ipv6_src", cidr("fd00:10::/64"))
        .destination(ip("fd00::5"))
        .set("ipv6_label", 5)
        .build(),
      actions: [setField("ipv6_dst", ip("fd00::6")), decTtl, resubmit(18)],
    }),
    "table=16, priority=99,ipv6,tun_ipv6_src=fd00::1,ipv6_src=fd00:10::/64,ipv6_dst=fd00::5,ipv6_label=0x00005 " +
      "actions=set_field:fd00::6->ipv6_dst,dec_ttl,resubmit(,18)",
  ],
  [
    flow({
      table: 17,
      match: match()
        .protocol("ip")
        .set("ip_dscp", 7)
        .set("nw_ecn", 1)
        .set("nw_ttl", 64)
        .masked("ip_frag", 2, 2)
        .build(),
      actions: [
        setField("ip_dscp", 0),
        setField("nw_ttl", 3),
        setField("ip_src", ip("10.0.0.1")),
        setField("ip_dst", ip("10.0.0.2")),
      ],
      hardTimeout: 60,
    }),
    "table=17, hard_timeout=60, ip,nw_tos=28,nw_ecn=1,nw_ttl=64,nw_frag=later actions=" +
      "set_field:0->ip_dscp,set_field:3->nw_ttl,set_field:10.0.0.1->ip_src,set_field:10.0.0.2->ip_dst",
  ],
  [
    flow({
      table: 21,
      priority: 200,
      match: match().set("eth_dst", "0e:00:0a:0a:01:01").build(),
      actions: [setField("reg1", 32769), load(bits("reg0", 21, 22), 1)],
      gotoTable: 28,
    }),
    "table=21, priority=200,dl_dst=0e:00:0a:0a:01:01 actions=set_field:0x8001->reg1,set_field:0x200000/0x600000->reg0,goto_table:28",
  ],
  [
    flow({
      table: 28,
      priority: 200,
      match: match()
        .bits(bits("reg0", 21, 22), 1)
        .build(),
      actions: [outputTo(whole("reg1"))],
    }),
    "table=28, priority=200,reg0=0x200000/0x600000 actions=output:NXM_NX_REG1[]",
  ],
  [
    flow({
      table: 28,
      priority: 210,
      match: match().protocol("ip").bits(bits("ct_mark", 6), 1).build(),
      actions: [output(Port.IN_PORT)],
    }),
    "table=28, priority=210,ct_mark=0x40/0x40,ip actions=IN_PORT",
  ],
  [
    flow({
      table: 28,
      priority: 201,
      match: match()
        .bits(bits("reg0", 25, 27), 1)
        .build(),
      actions: [
        throughMeter(namedMeter),
        controller({ userData: Uint8Array.of(1, 1), maxLength: 128 }),
        controller({ reason: 0, pause: true, controllerId: 3, meter: namedMeter }),
        controller({ maxLength: 64 }),
      ],
    }),
    "table=28, priority=201,reg0=0x2000000/0xe000000 actions=meter:256,controller(max_len=128,userdata=01.01)," +
      "controller(reason=no_match,id=3,pause,meter_id=256),CONTROLLER:64",
  ],
  [
    flow({ table: 28, priority: 202, actions: [output(Port.CONTROLLER, 128), output(Port.FLOOD), output(Port.ALL)] }),
    "table=28, priority=202 actions=CONTROLLER:128,FLOOD,ALL",
  ],
  [
    flow({ table: 28, priority: 203, actions: [resubmit(undefined, 2), resubmit(6, 3), resubmit(6, Port.LOCAL)] }),
    "table=28, priority=203 actions=resubmit:2,resubmit(3,6),resubmit(LOCAL,6)",
  ],
];

/** What stands beside the pipelines. */
const others: readonly (readonly [Flow, string])[] = [
  [flow({ table: 253, actions: [note(Uint8Array.of(1, 13))] }), "table=253, actions=note:01.0d.00.00.00.00"],
  [
    flow({
      table: 30,
      match: match().vlan(100).set("vlan_pcp", 3).build(),
      actions: [setField("vlan_pcp", 1), popVlan, resubmit(31)],
    }),
    "table=30, dl_vlan=100,dl_vlan_pcp=3 actions=set_field:1->vlan_pcp,pop_vlan,resubmit(,31)",
  ],
  [
    flow({ table: 30, match: match().vlan("none").build(), actions: [pushVlan(), setField("vlan_vid", 0x1000 | 100)] }),
    "table=30, vlan_tci=0x0000/0x1fff actions=push_vlan:0x8100,set_field:4196->vlan_vid",
  ],
  [flow({ table: 30, match: match().vlan("any").build() }), "table=30, vlan_tci=0x1000/0x1000 actions=drop"],
  [flow({ table: 30, match: match().protocol("rarp").build() }), "table=30, rarp actions=drop"],
  [flow({ table: 30, match: match().set("eth_type", 0x88cc).build() }), "table=30, dl_type=0x88cc actions=drop"],
  [
    flow({ table: 30, match: match().protocol("ip").set("nw_proto", 47).build() }),
    "table=30, ip,nw_proto=47 actions=drop",
  ],
  [
    flow({
      table: 31,
      match: match().masked("metadata", 5, 0xff).set("xreg1", 0x5_0000_0006n).build(),
      clearActions: true,
      writeActions: [output(3)],
      metadata: { value: 7n, mask: 0xffn },
      gotoTable: 32,
    }),
    "table=31, reg2=0x5,reg3=0x6,metadata=0x5/0xff actions=clear_actions,write_actions(output:3),write_metadata:0x7/0xff,goto_table:32",
  ],
  [
    flow({
      table: 31,
      priority: 1,
      idleTimeout: 7,
      importance: 4,
      flags: ["no_packet_counts", "send_flow_rem", "check_overlap"],
      actions: [setField("xxreg1", ip("fd00::1")), setField("xreg0", 5), setField("metadata", 5)],
    }),
    "table=31, idle_timeout=7, send_flow_rem check_overlap no_packet_counts importance=4, priority=1 actions=" +
      "set_field:0xfd000000000000000000000000000001->xxreg1,set_field:0x5->xreg0,set_field:0x5->metadata",
  ],
];

/**
 * A flow for every match and every action that a pipeline of registers, connection tracking, services and policies
 * has, and the line in which ovs-ofctl dumps it.
 */
export const pipelineFlows: readonly (readonly [Flow, string])[] = [
  ...classification,
  ...trackingFlows,
  ...serviceFlows,
  ...leaving,
  ...others,
];
