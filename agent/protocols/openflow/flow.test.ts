import { expect, test } from "vitest";
import { parseIp } from "../../../shared/net/ip.ts";
import { conjunction, decTtl, note, popVlan, pushVlan } from "../../../test/support/openflow-requests.ts";
import {
  type Action,
  bits,
  load,
  move,
  output,
  outputTo,
  resubmit,
  setField,
  throughMeter,
  toGroup,
  whole,
} from "./action.ts";
import { ct } from "./conntrack.ts";
import { type Flow, flow } from "./flow.ts";
import { addFlow } from "./flow-wire.ts";
import { group } from "./group.ts";
import { learn, learnLoad, learnMatch } from "./learn.ts";
import { match } from "./match.ts";
import { meter } from "./meter.ts";
import { InvalidFlow } from "./openflow-error.ts";
import { writeMessage } from "./request.ts";
import { packetOut } from "./switch-requests.ts";
import { WireWriter } from "./wire-writer.ts";

const ip = (text: string) => parseIp(text)!;
const ip4 = match().protocol("ip").build();
const ip6 = match().protocol("ipv6").build();
const with4 = (...actions: Action[]) => flow({ match: ip4, actions });
const learning = (...specs: ReturnType<typeof learnMatch>[]) => learn({ table: 9, specs });
const natTo = (address: string) => ct({ commit: true, nat: { side: "dst", from: ip(address) } });

test.each<[string, () => unknown, string]>([
  [
    "a field set that is not matched",
    () => flow({ actions: [setField("ip_dst", ip("10.0.0.1"))] }),
    'its action "set-field": of ip_dst, it needs protocol "ip"',
  ],
  ["a port set under another protocol", () => with4(setField("tcp_dst", 5)), 'of tcp_dst, it needs protocol "tcp"'],
  [
    "a move from what is not there",
    () => with4(move(whole("arp_spa"), whole("reg0"))),
    'of arp_spa, it needs protocol "arp"',
  ],
  ["hops counted without IP", () => flow({ actions: [decTtl] }), '"dec-ttl": it needs protocol "ip" or "ipv6"'],
  ["tracking without IP", () => flow({ actions: [ct({ table: 1 })] }), '"ct": it needs protocol "ip" or "ipv6"'],
  ["an address of IPv6 for IPv4", () => with4(natTo("fd00::1")), "its address is of IPv6, the match is of IPv4"],
  [
    "an address of IPv4 for IPv6",
    () => flow({ match: ip6, actions: [natTo("10.0.0.1")] }),
    "its address is of IPv4, the match is of IPv6",
  ],
  ["a tag's number without a tag", () => flow({ actions: [setField("vlan_vid", 0x1005)] }), "it needs a VLAN tag"],
  [
    "a tag's number behind its removal",
    () => flow({ match: match().vlan(5).build(), actions: [popVlan, setField("vlan_vid", 0x1005)] }),
    "it needs a VLAN tag",
  ],
  ["more beside a conjunction", () => with4(conjunction(1, 1, 2), resubmit(3)), 'other actions beside "conjunction"'],
  ["a way back to an earlier table", () => flow({ table: 5, gotoTable: 5 }), "it goes to table 5, wanted a later one"],
  ["table 255", () => flow({ table: 255 }), "table is 255, wanted 0 to 254"],
  ["a priority beyond 16 bits", () => flow({ priority: 65536 }), "priority is 65536"],
  ["a timeout beyond 16 bits", () => flow({ hardTimeout: 70_000 }), "hardTimeout is 70000"],
  ["a cookie of all ones", () => flow({ cookie: 0xffff_ffff_ffff_ffffn }), "wanted 64 bits, not all of them ones"],
  ["a field that cannot be set", () => setField("ct_state", 1), "the field is there to be read only"],
  ["bits beyond what is loaded", () => load(bits("reg0", 0, 3), 16), "0x10 is given, wanted 4 bits"],
  ["a part of what is set whole", () => load(bits("ip_dscp", 0, 1), 1), "a part is set, wanted the whole field"],
  ["a move of unlike widths", () => move(whole("tun_id"), whole("reg0")), "64 bits are to go where 32 are"],
  ["a move to what is read only", () => move(whole("reg0"), whole("ct_state")), "the second is there to be read only"],
  ["an output to a number that is too wide", () => outputTo(whole("tun_id")), "64 bits of tun_id are given"],
  ["a port below all", () => output(-1), "its port is -1, wanted 0 to 4294967294"],
  ["a port between those that 16 bits name", () => resubmit(1, 0xff00), "its port is 65280"],
  ["a table beyond the last", () => resubmit(255), "its table is 255, wanted 0 to 254"],
  ["a group that is all of them", () => toGroup(0xfffffffc), "its group is 4294967292"],
  ["meter 0", () => throughMeter(0), "its meter is 0, wanted 1 to"],
  ["a zone beyond 16 bits", () => ct({ zone: 65536 }), "its zone is 65536, wanted 0 to 65535"],
  ["tracking to half a table", () => ct({ table: 0.5 }), "its table is 0.5"],
  ["force without commit", () => ct({ force: true }), 'it has "force" without "commit"'],
  ["marks without commit", () => ct({ exec: [setField("ct_mark", 1)] }), 'it sets fields without "commit"'],
  [
    "other fields inside of ct",
    () => ct({ commit: true, exec: [setField("reg0", 1)] }),
    "wanted ct_mark and ct_label set",
  ],
  ["a zone of 8 bits", () => ct({ zone: bits("reg0", 0, 7) }), "its zone is 8 bits of reg0, wanted 16"],
  ["an address to set without commit", () => ct({ nat: { side: "src", from: ip("10.0.0.1") } }), 'wanted "commit" too'],
  [
    "a range that goes down",
    () => ct({ commit: true, nat: { side: "src", from: ip("10.0.0.2"), to: ip("10.0.0.1") } }),
    "wanted a range",
  ],
  [
    "ports that go down",
    () => ct({ commit: true, nat: { side: "src", from: ip("10.0.0.2"), port: 5, lastPort: 4 } }),
    "its ports are 5 to 4",
  ],
  [
    "a port without an address",
    () => ct({ commit: true, nat: { side: "src", port: 5 } }),
    "a range without a first address",
  ],
  [
    "a learned match without what it needs",
    () => with4(learning(learnMatch(whole("ip_src")))),
    'it would match ip_src, and it needs protocol "ip"',
  ],
  [
    "what is learned from what is not there",
    () => with4(learning(learnLoad(bits("reg0", 0, 15), whole("tcp_src")))),
    "of tcp_src, it needs",
  ],
  [
    "a learned number that is too wide",
    () => learning(learnLoad(bits("reg4", 16, 18), 8)),
    "0x8 is given, wanted 3 bits",
  ],
  [
    "a learned load of unlike widths",
    () => learning(learnLoad(whole("reg4"), bits("reg4", 0, 15))),
    "16 bits are given, wanted 32",
  ],
  ["two buckets in one", () => group(1, "indirect", []), "it has 0 buckets, wanted one"],
  ["weights in a group of all", () => group(1, "all", [{ weight: 1, actions: [] }]), 'wanted type "select"'],
  [
    "two buckets of one number",
    () => group(1, "select", [{ id: 1, actions: [] }, { actions: [] }]),
    "two of its buckets have one number",
  ],
  ["a group of a reserved number", () => group(0xffffff00, "all", []), "its number is not from 0"],
  ["a meter of number 0", () => meter({ id: 0, unit: "kbps", rate: 1 }), "its number is not from 1"],
  ["a meter that lets nothing through", () => meter({ id: 1, unit: "kbps", rate: 0 }), "its rate or burst is 0"],
  ["a packet that is too long", () => packetOut(new Uint8Array(65_000), []), "it has 65000 bytes"],
])("refuses %s", (_name, make, is) => {
  expect(make).toThrow(InvalidFlow);
  expect(make).toThrow(is);
});

test.each([
  ["a tag that was pushed", [pushVlan(), setField("vlan_vid", 0x1005)]],
  ["notes beside a conjunction", [conjunction(1, 1, 2), note(Uint8Array.of(1))]],
])("takes %s", (_name, actions) => {
  expect(flow({ actions }).actions).toBe(actions);
});

const write = (given: Flow): Uint8Array => {
  const writer = new WireWriter();
  writeMessage(writer, addFlow(given), 7);
  return writer.done();
};

test("frames a flow as the specification lays it out", () => {
  const made = flow({
    table: 3,
    priority: 200,
    cookie: 0x0102n,
    match: match().set("in_port", 5).build(),
    actions: [resubmit(4)],
  });
  const hex = [
    "06 0e 0058 00000007", // 1.5, FLOW_MOD, length, xid
    "0000000000000102 0000000000000000", // cookie, mask
    "03 00 0000 0000 00c8 ffffffff ffffffff ffffffff 0000 0000", // table, add, timeouts, priority, buffer, out, flags
    "0001 000c 80000004 00000005 00000000", // match: in_port
    "0004 0018 00000000", // apply actions
    "ffff 0010 00002320 000e fff8 04 000000", // resubmit(,4)
  ];
  expect(Buffer.from(write(made)).toString("hex")).toBe(hex.join("").replaceAll(" ", ""));
});

test.each<[string, Partial<Flow>]>([
  ["8", { actions: [{ t: "ct", commit: true, force: false, zone: 0, table: 256, alg: 0, nat: undefined, exec: [] }] }],
  ["16", { actions: [learn({ table: 1, hardTimeout: 65_536, specs: [] })] }],
  ["32", { actions: [{ t: "group", group: -1 }] }],
  ["64", { metadata: { value: 1n << 64n, mask: 1n } }],
])("a number of more than %s bits is not cut to them", (bits, given) => {
  expect(() => write(flow(given.actions === undefined ? given : { match: ip4, ...given }))).toThrow(
    `wanted ${bits} bits`,
  );
});

test("a flow that no message holds is refused", () => {
  const long = flow({ actions: Array.from({ length: 5000 }, () => resubmit(4)) });
  expect(() => write(long)).toThrow("wanted 65535 at the most");
});
