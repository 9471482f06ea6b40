import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { bits } from "./action.ts";
import { match } from "./match.ts";
import { matchText } from "./match-text.ts";
import { readMatch, writeMatch } from "./match-wire.ts";
import { InvalidFlow } from "./openflow-error.ts";
import { ip6Text, prefixOf } from "./values.ts";
import { WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

test.each([
  [
    "an address without a protocol",
    () => match().destination(ip("10.0.0.1")).build(),
    'ip_dst: it needs protocol "ip", which the match does not say',
  ],
  [
    "an address under the other protocol",
    () => match().protocol("ipv6").destination(ip("10.0.0.1")).build(),
    'ip_dst: it needs protocol "ip"',
  ],
  [
    "a port without a transport",
    () => match().protocol("ip").set("tcp_dst", 80).build(),
    'tcp_dst: it needs protocol "tcp" or "tcp6"',
  ],
  ["a port under another transport", () => match().protocol("udp").set("tcp_dst", 80).build(), 'needs protocol "tcp"'],
  ["a protocol without IP", () => match().set("nw_proto", 6).build(), 'nw_proto: it needs protocol "ip" or "ipv6"'],
  [
    "the sender of an ARP without ARP",
    () => match().protocol("ip").set("arp_spa", ip("10.0.0.1")).build(),
    'needs protocol "arp"',
  ],
  ["ICMP's type under IPv6", () => match().protocol("icmp6").set("icmp_type", 8).build(), 'needs protocol "icmp"'],
  [
    "a neighbour's address without its message",
    () => match().protocol("icmp6").set("nd_target", ip("fd00::1")).build(),
    "needs icmpv6_type 135 or 136",
  ],
  ["the priority of a tag without one", () => match().vlan("none").set("vlan_pcp", 1).build(), "needs a VLAN tag"],
  [
    "a connection's address without a connection",
    () => match().protocol("ip").ctState("+trk").set("ct_nw_src", ip("10.0.0.1")).build(),
    'ct_state "+est"',
  ],
  [
    "an address of the other family",
    () => match().protocol("ip").set("ip_src", ip("fd00::1")),
    '"fd00::1" is given, wanted an IPv4 address',
  ],
  [
    "a network of the other family",
    () => match().protocol("ip").cidr("ip_src", cidr("fd00::/64")),
    "wanted an IPv4 address",
  ],
  ["a network in a wider field", () => match().cidr("ct_label", cidr("10.0.0.0/8")), "wanted 128 bits"],
  [
    "a number that is too large",
    () => match().set("in_port", 2 ** 32),
    "in_port: 0x100000000 is too large, wanted 32 bits",
  ],
  ["half a number", () => match().set("reg0", 0.5), "0.5 is given, wanted a whole number"],
  ["a text that is no MAC", () => match().set("eth_src", "0a:00:00:00:01"), "wanted six pairs of hex digits"],
  ["a mask of nothing", () => match().masked("reg0", 0, 0), "the mask is 0"],
  ["a mask where there is none", () => match().protocol("ip").masked("ip_dscp", 4, 4), "wanted the whole field"],
  ["bits outside of the mask", () => match().masked("reg0", 3, 1), "the value 0x3 has bits that the mask 0x1 has not"],
  [
    "two values",
    () => match().set("in_port", 1).set("in_port", 2),
    "0x2 is wanted in place of what it was given before",
  ],
  [
    "two values of a bit",
    () =>
      match()
        .bits(bits("reg0", 0, 3), 1)
        .bits(bits("reg0", 3, 4), 1),
    "in place of what it was given before",
  ],
  ["two protocols", () => match().protocol("tcp").protocol("arp"), "eth_type: 0x806 is wanted in place"],
  ["more than the bits hold", () => match().bits(bits("reg0", 0, 3), 16), "0x10 is given, wanted 4 bits"],
  ["bits that the field has not", () => bits("reg0", 30, 32), "30 to 32 are given, wanted some of 0 to 31"],
  ["bits in the wrong order", () => bits("reg0", 3, 2), "3 to 2 are given"],
  ["a state that is none", () => match().ctState("+new+old"), 'there is no flag "old"'],
  ["a state without signs", () => match().ctState("new"), 'wanted flags like "+new-rpl"'],
])("refuses %s", (_name, make, is) => {
  expect(make).toThrow(InvalidFlow);
  expect(make).toThrow(is);
});

test("bits of one register come together, and registers in one are taken apart", () => {
  const together = match()
    .bits(bits("reg0", 0, 3), 2)
    .bits(bits("reg0", 9), 1)
    .bits(bits("reg0", 0, 3), 2)
    .build();
  expect(matchText(together)).toBe("reg0=0x202/0x20f");
  expect(matchText(match().set("xxreg0", ip("fd00::1")).build())).toBe("reg0=0xfd000000,reg1=0,reg2=0,reg3=0x1");
  expect(matchText(match().masked("xreg1", 0x5_0000_0000n, 0xf_0000_0000n).build())).toBe("reg2=0x5/0xf");
  expect(() => match().set("reg3", 1).set("xxreg0", 2)).toThrow(InvalidFlow);
});

test("says what needs what in whatever order it was given", () => {
  const early = match().set("tcp_dst", 80).destination(ip("10.0.0.1")).protocol("tcp").build();
  expect(early.fields.map(({ field }) => field.name)).toEqual(["eth_type", "nw_proto", "ip_dst", "tcp_dst"]);
});

test("a network of all addresses asks for nothing, and host bits are left out", () => {
  expect(matchText(match().protocol("ip").cidr("ip_src", cidr("0.0.0.0/0")).build())).toBe("ip");
  expect(matchText(match().protocol("ip").cidr("ip_src", cidr("10.1.2.3/8")).build())).toBe("ip,nw_src=10.0.0.0/8");
});

test("masks with holes, and addresses that the C library writes in its own way", () => {
  expect(matchText(match().protocol("ip").masked("ip_src", 0x0a000001, 0xff0000ff).build())).toBe(
    "ip,nw_src=10.0.0.1/255.0.0.255",
  );
  expect([0xff00n, 0n, 0xffffn, 0xf0f0n].map((mask) => prefixOf(mask, 16))).toEqual([8, 0, 16, undefined]);
  expect([0n, 1n, 0x10000n, 0x7f000001n, 0xffff_0a000001n, 1n << 127n].map(ip6Text)).toEqual([
    "::",
    "::1",
    "::0.1.0.0",
    "::127.0.0.1",
    "10.0.0.1",
    "8000::",
  ]);
});

test("a field that is not known is kept, and goes back as it came", () => {
  const bytes = Buffer.from("0001 0015 80006a04 00000001 0001fe05 0102030405 000000".replaceAll(" ", ""), "hex");
  const found = readMatch(new WireReader(bytes, "a match"));
  expect(matchText(found)).toBe("unknown_field=0x80006a04,unknown_field=0x1fe05");
  const writer = new WireWriter();
  writeMatch(writer, found);
  expect(Buffer.from(writer.done()).toString("hex")).toBe(bytes.toString("hex"));
});
