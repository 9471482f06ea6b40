import {
  bits,
  ct,
  type Flow,
  flow,
  learn,
  learnLoad,
  learnMatch,
  load,
  match,
  move,
  resubmit,
  setField,
  toGroup,
  whole,
} from "../../agent/protocols/openflow/mod.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { conjunction, ctClear } from "../support/openflow-requests.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

/** The group that a flow names has to be there. */
export const namedGroup = 7;

/** Connection tracking, its state, its marks and its translation of addresses. */
export const trackingFlows: readonly (readonly [Flow, string])[] = [
  [
    flow({
      table: 6,
      match: match().protocol("ip").build(),
      actions: [ct({ table: 7, zone: 65520, nat: { side: "existing" } })],
    }),
    "table=6, ip actions=ct(table=7,zone=65520,nat)",
  ],
  [
    flow({ table: 6, match: match().protocol("ipv6").build(), actions: [ct({ table: 7, zone: bits("reg8", 0, 15) })] }),
    "table=6, ipv6 actions=ct(table=7,zone=NXM_NX_REG8[0..15])",
  ],
  [
    flow({ table: 7, priority: 200, match: match().protocol("ip").ctState("+inv+trk").build() }),
    "table=7, priority=200,ct_state=+inv+trk,ip actions=drop",
  ],
  [
    flow({
      table: 7,
      priority: 190,
      match: match().ctState("-new+trk").protocol("ip").bits(bits("ct_mark", 4), 1).build(),
      actions: [load(bits("reg0", 9), 1), resubmit(20)],
    }),
    "table=7, priority=190,ct_state=-new+trk,ct_mark=0x10/0x10,ip actions=set_field:0x200/0x200->reg0,resubmit(,20)",
  ],
  [
    flow({
      table: 7,
      priority: 191,
      match: match()
        .protocol("ip")
        .ctState("+est-rel+rpl+trk")
        .masked("ct_label", 5n << 32n, 0xffffffffn << 32n)
        .set("ct_zone", 65520)
        .build(),
      actions: [ctClear],
    }),
    "table=7, priority=191,ct_state=+est-rel+rpl+trk,ct_zone=65520,ct_label=0x500000000/0xffffffff00000000,ip actions=ct_clear",
  ],
  [
    flow({
      table: 27,
      priority: 200,
      match: match().protocol("ip").ctState("+new+trk").bits(bits("ct_mark", 5), 0).build(),
      actions: [
        ct({
          commit: true,
          zone: 65520,
          table: 28,
          exec: [move(bits("reg0", 0, 3), bits("ct_mark", 0, 3)), load(bits("ct_label", 32, 63), 9)],
        }),
      ],
    }),
    "table=27, priority=200,ct_state=+new+trk,ct_mark=0/0x20,ip actions=ct(commit,table=28,zone=65520," +
      "exec(move:NXM_NX_REG0[0..3]->NXM_NX_CT_MARK[0..3],set_field:0x900000000/0xffffffff00000000->ct_label))",
  ],
  [
    flow({
      table: 11,
      priority: 200,
      match: match()
        .protocol("tcp")
        .set("reg3", ip("10.10.2.7"))
        .bits(bits("reg4", 0, 18), 0x21f90)
        .build(),
      actions: [
        ct({
          commit: true,
          zone: 65520,
          table: 12,
          nat: { side: "dst", from: ip("10.10.2.7"), port: 8080 },
          exec: [load(bits("ct_mark", 4), 1)],
        }),
      ],
    }),
    "table=11, priority=200,tcp,reg3=0xa0a0207,reg4=0x21f90/0x7ffff actions=ct(commit,table=12,zone=65520," +
      "nat(dst=10.10.2.7:8080),exec(set_field:0x10/0x10->ct_mark))",
  ],
  [
    flow({
      table: 11,
      priority: 200,
      match: match().protocol("udp6").set("xxreg3", ip("fd00::7")).build(),
      actions: [
        ct({ commit: true, force: true, zone: 65510, table: 12, nat: { side: "dst", from: ip("fd00::7"), port: 53 } }),
      ],
    }),
    "table=11, priority=200,udp6,reg12=0xfd000000,reg13=0,reg14=0,reg15=0x7 " +
      "actions=ct(commit,force,table=12,zone=65510,nat(dst=[fd00::7]:53))",
  ],
  [
    flow({
      table: 12,
      match: match().protocol("ip").build(),
      actions: [
        ct({
          commit: true,
          zone: 65521,
          table: 13,
          nat: {
            side: "src",
            from: ip("10.0.0.1"),
            to: ip("10.0.0.9"),
            port: 1024,
            lastPort: 65535,
            persistent: true,
            choice: "random",
          },
        }),
      ],
    }),
    "table=12, ip actions=ct(commit,table=13,zone=65521,nat(src=10.0.0.1-10.0.0.9:1024-65535,persistent,random))",
  ],
  [
    flow({
      table: 12,
      priority: 5,
      match: match()
        .protocol("ip")
        .ctState("-inv+trk")
        .set("ct_nw_proto", 6)
        .cidr("ct_nw_src", cidr("10.0.0.0/8"))
        .set("ct_nw_dst", ip("10.96.0.1"))
        .set("ct_tp_dst", 80)
        .build(),
      actions: [ct({ commit: true, nat: { side: "src", from: ip("169.254.0.253") } })],
    }),
    "table=12, priority=5,ct_state=-inv+trk,ct_nw_src=10.0.0.0/8,ct_nw_dst=10.96.0.1,ct_nw_proto=6,ct_tp_dst=80,ip " +
      "actions=ct(commit,nat(src=169.254.0.253))",
  ],
];

/** Services, affinity by learned flows, policies by conjunctions. */
export const serviceFlows: readonly (readonly [Flow, string])[] = [
  [
    flow({
      table: 10,
      priority: 200,
      match: match()
        .protocol("tcp")
        .destination(ip("10.96.0.10"))
        .set("tcp_dst", 80)
        .bits(bits("reg4", 16, 18), 1)
        .build(),
      actions: [
        load(bits("reg4", 16, 18), 2),
        load(bits("reg0", 9), 1),
        setField("reg7", namedGroup),
        toGroup(namedGroup),
      ],
    }),
    "table=10, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.96.0.10,tp_dst=80 actions=" +
      "set_field:0x20000/0x70000->reg4,set_field:0x200/0x200->reg0,set_field:0x7->reg7,group:7",
  ],
  [
    flow({
      table: 10,
      priority: 190,
      match: match()
        .protocol("tcp")
        .bits(bits("reg4", 16, 18), 3)
        .build(),
      actions: [
        learn({
          table: 9,
          hardTimeout: 300,
          finIdleTimeout: 5,
          idleTimeout: 60,
          priority: 200,
          deleteLearned: true,
          limit: 1000,
          cookie: 0x0001_0300_0000_0007n,
          specs: [
            learnMatch(whole("eth_type"), 0x0800),
            learnMatch(whole("nw_proto"), 6),
            learnMatch(whole("tcp_dst")),
            learnMatch(whole("ip_dst")),
            learnMatch(whole("ip_src")),
            learnLoad(whole("reg3"), whole("reg3")),
            learnLoad(bits("reg4", 0, 15), bits("reg4", 0, 15)),
            learnLoad(bits("reg4", 26), bits("reg4", 26)),
            learnLoad(bits("reg4", 16, 18), 2),
            learnLoad(bits("reg0", 9), 1),
          ],
        }),
        load(bits("reg4", 16, 18), 2),
        resubmit(11),
      ],
    }),
    "table=10, priority=190,tcp,reg4=0x30000/0x70000 actions=learn(table=9,idle_timeout=60,hard_timeout=300," +
      "fin_idle_timeout=5,priority=200,delete_learned,cookie=0x1030000000007,limit=1000,eth_type=0x800,nw_proto=6," +
      "NXM_OF_TCP_DST[],NXM_OF_IP_DST[],NXM_OF_IP_SRC[],load:NXM_NX_REG3[]->NXM_NX_REG3[]," +
      "load:NXM_NX_REG4[0..15]->NXM_NX_REG4[0..15],load:NXM_NX_REG4[26]->NXM_NX_REG4[26]," +
      "load:0x2->NXM_NX_REG4[16..18],load:0x1->NXM_NX_REG0[9]),set_field:0x20000/0x70000->reg4,resubmit(,11)",
  ],
  [
    flow({
      table: 14,
      priority: 200,
      match: match().protocol("ip").cidr("ip_src", cidr("10.10.0.0/16")).build(),
      actions: [conjunction(5, 1, 3), conjunction(6, 2, 2)],
    }),
    "table=14, priority=200,ip,nw_src=10.10.0.0/16 actions=conjunction(5,1/3),conjunction(6,2/2)",
  ],
  [
    flow({
      table: 14,
      priority: 190,
      match: match().protocol("ip").set("conj_id", 5).build(),
      actions: [
        setField("reg5", 5),
        ct({ commit: true, table: 15, zone: 65520, exec: [setField("ct_label", 5, 0xffffffff)] }),
      ],
    }),
    "table=14, priority=190,conj_id=5,ip actions=set_field:0x5->reg5," +
      "ct(commit,table=15,zone=65520,exec(set_field:0x5/0xffffffff->ct_label))",
  ],
  [
    flow({
      table: 14,
      priority: 201,
      match: match().protocol("udp").masked("udp_dst", 8192, 0xfff0).build(),
      actions: [resubmit(15)],
    }),
    "table=14, priority=201,udp,tp_dst=0x2000/0xfff0 actions=resubmit(,15)",
  ],
  [
    flow({ table: 14, priority: 202, match: match().protocol("tcp").tcpFlags("+syn-ack").set("tcp_src", 5).build() }),
    "table=14, priority=202,tcp,tp_src=5,tcp_flags=+syn-ack actions=drop",
  ],
  [
    flow({
      table: 14,
      priority: 203,
      match: match().protocol("sctp").set("sctp_dst", 5000).build(),
      actions: [resubmit(15)],
    }),
    "table=14, priority=203,sctp,tp_dst=5000 actions=resubmit(,15)",
  ],
  [
    flow({ table: 14, priority: 204, match: match().protocol("icmp").set("icmp_type", 8).set("icmp_code", 0).build() }),
    "table=14, priority=204,icmp,icmp_type=8,icmp_code=0 actions=drop",
  ],
  [
    flow({
      table: 14,
      priority: 205,
      match: match()
        .protocol("icmp6")
        .set("icmpv6_type", 135)
        .set("nd_target", ip("fd00::1"))
        .set("nd_sll", "0a:00:00:00:00:01")
        .build(),
      actions: [setField("nd_target", ip("fd00::2"))],
    }),
    "table=14, priority=205,icmp6,icmp_type=135,nd_target=fd00::1,nd_sll=0a:00:00:00:00:01 actions=set_field:fd00::2->nd_target",
  ],
];
