import { formatPort } from "./constants.ts";
import type { FieldName } from "./fields.ts";
import type { Match, MatchField } from "./match.ts";
import { flagsText, hex, hexWide, macText, masked4, masked6 } from "./values.ts";

type Entry = { readonly value: bigint; readonly mask: bigint; readonly exact: boolean };
type Found = ReadonlyMap<FieldName, Entry>;
type Line = (found: Found) => string | undefined;

/** The match in ovs-ofctl's words and order (match_format of Open vSwitch 3.1), parts joined by commas; "" matches all. */
export function matchText(match: Match): string {
  const found = new Map(match.fields.map((entry) => [entry.field.name, entryOf(entry)]));
  const parts = lines.map((line) => line(found)).filter((part) => part !== undefined);
  const unknown = match.unknown.map(({ header }) => `unknown_field=0x${header.toString(16)}`);
  return [...parts, ...unknown].join(",");
}

const entryOf = ({ field, value, mask }: MatchField): Entry => ({ value, mask, exact: mask === field.ones });

/** How an entry is written behind its name. */
type Form = (entry: Entry) => string;

const inHex: Form = ({ value, mask, exact }) => hex(value) + (exact ? "" : `/${hex(mask)}`);
/** Numbers of 16 bits: decimal, but hexadecimal with a mask, zero as "0x0". */
const inDecimal: Form = ({ value, mask, exact }) =>
  exact ? value.toString() : `${hexWide(value, 1)}/${hexWide(mask, 1)}`;
const plain: Form = ({ value }) => value.toString();
const mac: Form = ({ value, mask, exact }) => macText(value) + (exact ? "" : `/${macText(mask)}`);
const ip4: Form = ({ value, mask }) => masked4(value, mask);
const ip6: Form = ({ value, mask }) => masked6(value, mask);
const label: Form = ({ value, mask, exact }) => hexWide(value, 5) + (exact ? "" : `/${hexWide(mask, 5)}`);
const ctState: Form = ({ value, mask }) => flagsText("ct-state", value, mask & 0xffn, 0xffn);
const tcpFlags: Form = ({ value, mask }) => flagsText("tcp-flags", value, mask, 0xfffn);
const tunnelFlags: Form = ({ value, mask }) => flagsText("tunnel", value, mask, 0n);

const at = (name: FieldName, shown: string, form: Form): Line => {
  return (found) => {
    const entry = found.get(name);
    return entry === undefined ? undefined : `${shown}=${form(entry)}`;
  };
};

const same = (name: FieldName, form: Form): Line => at(name, name, form);

const typeOf = (found: Found): number => Number(found.get("eth_type")?.value ?? -1n);
const typeWords = new Map([
  [0x0800, "ip"],
  [0x86dd, "ipv6"],
  [0x0806, "arp"],
  [0x8035, "rarp"],
  [0x8847, "mpls"],
  [0x8848, "mplsm"],
]);
const protocolWords = new Map([
  [0x0800_06, "tcp"],
  [0x0800_11, "udp"],
  [0x0800_84, "sctp"],
  [0x0800_01, "icmp"],
  [0x86dd_06, "tcp6"],
  [0x86dd_11, "udp6"],
  [0x86dd_84, "sctp6"],
  [0x86dd_3a, "icmp6"],
]);

const protocolWord = (found: Found): string | undefined => {
  const proto = found.get("nw_proto");
  return proto === undefined ? undefined : protocolWords.get(typeOf(found) * 256 + Number(proto.value));
};
const protocol: Line = (found) => protocolWord(found) ?? typeWords.get(typeOf(found));
const otherType: Line = (found) => {
  const type = found.get("eth_type");
  return type === undefined || typeWords.has(typeOf(found)) ? undefined : `dl_type=${hexWide(type.value, 4)}`;
};
const otherProtocol: Line = (found) => {
  const proto = found.get("nw_proto");
  return proto === undefined || protocolWord(found) !== undefined ? undefined : `nw_proto=${proto.value}`;
};

const vlan: Line = (found) => {
  const id = found.get("vlan_vid");
  const priority = found.get("vlan_pcp");
  if (id === undefined) return undefined;
  const bits = id.mask & 0xfffn;
  if ((id.value & 0x1000n) !== 0n && (bits === 0xfffn || (bits === 0n && priority !== undefined))) {
    const number = bits === 0n ? [] : [`dl_vlan=${id.value & 0xfffn}`];
    return [...number, ...(priority === undefined ? [] : [`dl_vlan_pcp=${priority.value}`])].join(",");
  }
  return `vlan_tci=${hexWide(id.value, 4)}/${hexWide(id.mask, 4)}`;
};

const frag: Line = (found) => {
  const entry = found.get("ip_frag");
  if (entry === undefined) return undefined;
  const any = (entry.value & 1n) !== 0n;
  const later = (entry.value & 2n) !== 0n;
  if (entry.mask === 3n) return `nw_frag=${any ? (later ? "later" : "first") : later ? "<error>" : "no"}`;
  return entry.mask === 1n ? `nw_frag=${any ? "yes" : "no"}` : `nw_frag=${later ? "later" : "not_later"}`;
};

const dscp: Line = (found) => {
  const entry = found.get("ip_dscp");
  return entry === undefined ? undefined : `nw_tos=${entry.value << 2n}`;
};

/** Ports of TCP, UDP and SCTP are one thing to ovs-ofctl. */
const ports = (side: "src" | "dst"): Line => {
  return (found) => {
    const entry = (["tcp", "udp", "sctp"] as const).map((name) => found.get(`${name}_${side}`)).find(Boolean);
    return entry === undefined ? undefined : `tp_${side}=${inDecimal(entry)}`;
  };
};

const registers: readonly Line[] = Array.from({ length: 16 }, (_, n) => same(`reg${n}` as FieldName, inHex));

const lines: readonly Line[] = [
  same("pkt_mark", inHex),
  same("conj_id", plain),
  same("ct_state", ctState),
  same("ct_zone", inDecimal),
  same("ct_mark", inHex),
  same("ct_label", inHex),
  same("ct_nw_src", ip4),
  same("ct_ipv6_src", ip6),
  same("ct_nw_dst", ip4),
  same("ct_ipv6_dst", ip6),
  same("ct_nw_proto", plain),
  same("ct_tp_src", inDecimal),
  same("ct_tp_dst", inDecimal),
  protocol,
  ...registers,
  same("tun_id", inHex),
  same("tun_src", ip4),
  same("tun_dst", ip4),
  same("tun_ipv6_src", ip6),
  same("tun_ipv6_dst", ip6),
  same("tun_flags", tunnelFlags),
  same("metadata", inHex),
  same("in_port", ({ value }) => formatPort(Number(value))),
  vlan,
  at("eth_src", "dl_src", mac),
  at("eth_dst", "dl_dst", mac),
  otherType,
  same("ipv6_src", ip6),
  same("ipv6_dst", ip6),
  same("ipv6_label", label),
  at("ip_src", "nw_src", ip4),
  at("ip_dst", "nw_dst", ip4),
  same("arp_spa", ip4),
  same("arp_tpa", ip4),
  otherProtocol,
  same("arp_op", plain),
  same("arp_sha", mac),
  same("arp_tha", mac),
  dscp,
  same("nw_ecn", plain),
  same("nw_ttl", plain),
  frag,
  same("icmp_type", plain),
  same("icmp_code", plain),
  at("icmpv6_type", "icmp_type", plain),
  at("icmpv6_code", "icmp_code", plain),
  same("nd_target", ip6),
  same("nd_sll", mac),
  same("nd_tll", mac),
  ports("src"),
  ports("dst"),
  same("tcp_flags", tcpFlags),
];
