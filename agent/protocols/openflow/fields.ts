/**
 * The fields of a packet that flows match and actions write: OXM (OpenFlow 1.5.1, 7.2.3.7) and the Nicira extensions
 * (nicira-ext.h), under the names that ovs-fields(7) gives them.
 */

/** How a value is written for people. */
export type Notation =
  | "decimal"
  | "hex"
  | "mac"
  | "ip4"
  | "ip6"
  | "port"
  | "ct-state"
  | "tcp-flags"
  | "frag"
  | "tunnel";

/** What a match must say before the field means anything (ovs-fields(7), "Prerequisites"). */
export type Need =
  | "ip4"
  | "ip6"
  | "ip"
  | "arp"
  | "tcp"
  | "udp"
  | "sctp"
  | "icmp4"
  | "icmp6"
  | "vlan"
  | "nd"
  | "nd-solicit"
  | "nd-advert"
  | "tracked";

type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14 | 15;
type RegisterName = `reg${Register}` | `xreg${0 | 1 | 2 | 3 | 4 | 5 | 6 | 7}` | `xxreg${0 | 1 | 2 | 3}`;

export type FieldName = RegisterName | (typeof rows)[number][0];

export interface Field {
  /** Its place in a match. */
  readonly rank: number;
  readonly name: FieldName;
  /** Where it stands on the wire: class, and number in it. */
  readonly oxmClass: number;
  readonly code: number;
  /** On the wire, without a mask. */
  readonly bytes: number;
  /** Of those, the bits that count. */
  readonly bits: number;
  /** Whether a match may ask for some of its bits only, and an action set some of them. */
  readonly maskable: boolean;
  readonly writable: boolean;
  readonly notation: Notation;
  readonly need: Need | undefined;
  /** As `move`, `learn` and `output` name it: `NXM_OF_IP_SRC`. */
  readonly nxmName: string;
  /** All bits that count. */
  readonly ones: bigint;
  /** xreg and xxreg are several registers in one, the first of them with the highest bits. */
  readonly registers: { readonly first: number; readonly count: number } | undefined;
}

const NXM0 = 0x0000;
const NXM1 = 0x0001;
const OXM = 0x8000;
const PKT_REG = 0x8001;
/** Ericsson's, which Open vSwitch takes since 2.11. */
const ERICSSON = 0x1000;

/** Name, class, code, bytes, bits, maskable, writable, notation, need, name in `move`. */
const rows = [
  ["in_port", OXM, 0, 4, 32, false, false, "port", undefined, "NXM_OF_IN_PORT"],
  ["metadata", OXM, 2, 8, 64, true, true, "hex", undefined, "OXM_OF_METADATA"],
  ["eth_dst", OXM, 3, 6, 48, true, true, "mac", undefined, "NXM_OF_ETH_DST"],
  ["eth_src", OXM, 4, 6, 48, true, true, "mac", undefined, "NXM_OF_ETH_SRC"],
  ["eth_type", OXM, 5, 2, 16, false, false, "hex", undefined, "NXM_OF_ETH_TYPE"],
  ["vlan_vid", OXM, 6, 2, 13, true, true, "decimal", undefined, "OXM_OF_VLAN_VID"],
  ["vlan_pcp", OXM, 7, 1, 3, false, true, "decimal", "vlan", "OXM_OF_VLAN_PCP"],
  ["ip_dscp", OXM, 8, 1, 6, false, true, "decimal", "ip", "OXM_OF_IP_DSCP"],
  ["nw_ecn", OXM, 9, 1, 2, false, true, "decimal", "ip", "NXM_NX_IP_ECN"],
  ["nw_proto", OXM, 10, 1, 8, false, false, "decimal", "ip", "NXM_OF_IP_PROTO"],
  ["ip_src", OXM, 11, 4, 32, true, true, "ip4", "ip4", "NXM_OF_IP_SRC"],
  ["ip_dst", OXM, 12, 4, 32, true, true, "ip4", "ip4", "NXM_OF_IP_DST"],
  ["tcp_src", OXM, 13, 2, 16, true, true, "decimal", "tcp", "NXM_OF_TCP_SRC"],
  ["tcp_dst", OXM, 14, 2, 16, true, true, "decimal", "tcp", "NXM_OF_TCP_DST"],
  ["udp_src", OXM, 15, 2, 16, true, true, "decimal", "udp", "NXM_OF_UDP_SRC"],
  ["udp_dst", OXM, 16, 2, 16, true, true, "decimal", "udp", "NXM_OF_UDP_DST"],
  ["sctp_src", OXM, 17, 2, 16, true, true, "decimal", "sctp", "OXM_OF_SCTP_SRC"],
  ["sctp_dst", OXM, 18, 2, 16, true, true, "decimal", "sctp", "OXM_OF_SCTP_DST"],
  ["icmp_type", OXM, 19, 1, 8, false, true, "decimal", "icmp4", "NXM_OF_ICMP_TYPE"],
  ["icmp_code", OXM, 20, 1, 8, false, true, "decimal", "icmp4", "NXM_OF_ICMP_CODE"],
  ["arp_op", OXM, 21, 2, 16, false, true, "decimal", "arp", "NXM_OF_ARP_OP"],
  ["arp_spa", OXM, 22, 4, 32, true, true, "ip4", "arp", "NXM_OF_ARP_SPA"],
  ["arp_tpa", OXM, 23, 4, 32, true, true, "ip4", "arp", "NXM_OF_ARP_TPA"],
  ["arp_sha", OXM, 24, 6, 48, true, true, "mac", "arp", "NXM_NX_ARP_SHA"],
  ["arp_tha", OXM, 25, 6, 48, true, true, "mac", "arp", "NXM_NX_ARP_THA"],
  ["ipv6_src", OXM, 26, 16, 128, true, true, "ip6", "ip6", "NXM_NX_IPV6_SRC"],
  ["ipv6_dst", OXM, 27, 16, 128, true, true, "ip6", "ip6", "NXM_NX_IPV6_DST"],
  ["ipv6_label", OXM, 28, 4, 20, true, true, "hex", "ip6", "NXM_NX_IPV6_LABEL"],
  ["icmpv6_type", OXM, 29, 1, 8, false, true, "decimal", "icmp6", "NXM_NX_ICMPV6_TYPE"],
  ["icmpv6_code", OXM, 30, 1, 8, false, true, "decimal", "icmp6", "NXM_NX_ICMPV6_CODE"],
  ["nd_target", OXM, 31, 16, 128, true, true, "ip6", "nd", "NXM_NX_ND_TARGET"],
  ["nd_sll", OXM, 32, 6, 48, true, true, "mac", "nd-solicit", "NXM_NX_ND_SLL"],
  ["nd_tll", OXM, 33, 6, 48, true, true, "mac", "nd-advert", "NXM_NX_ND_TLL"],
  ["nd_reserved", ERICSSON, 1, 4, 32, false, true, "decimal", "nd", "ERICOXM_OF_ICMPV6_ND_RESERVED"],
  ["nd_options_type", ERICSSON, 2, 1, 8, false, true, "decimal", "nd", "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE"],
  ["tun_id", OXM, 38, 8, 64, true, true, "hex", undefined, "NXM_NX_TUN_ID"],
  ["ip_frag", NXM1, 26, 1, 2, true, false, "frag", "ip", "NXM_NX_IP_FRAG"],
  ["nw_ttl", NXM1, 29, 1, 8, false, true, "decimal", "ip", "NXM_NX_IP_TTL"],
  ["tun_src", NXM1, 31, 4, 32, true, true, "ip4", undefined, "NXM_NX_TUN_IPV4_SRC"],
  ["tun_dst", NXM1, 32, 4, 32, true, true, "ip4", undefined, "NXM_NX_TUN_IPV4_DST"],
  ["pkt_mark", NXM1, 33, 4, 32, true, true, "hex", undefined, "NXM_NX_PKT_MARK"],
  ["tcp_flags", NXM1, 34, 2, 12, true, false, "tcp-flags", "tcp", "NXM_NX_TCP_FLAGS"],
  ["conj_id", NXM1, 37, 4, 32, false, false, "decimal", undefined, "NXM_NX_CONJ_ID"],
  ["tun_flags", NXM1, 104, 2, 1, true, true, "tunnel", undefined, "NXM_NX_TUN_FLAGS"],
  ["ct_state", NXM1, 105, 4, 32, true, false, "ct-state", undefined, "NXM_NX_CT_STATE"],
  ["ct_zone", NXM1, 106, 2, 16, false, false, "hex", undefined, "NXM_NX_CT_ZONE"],
  ["ct_mark", NXM1, 107, 4, 32, true, true, "hex", undefined, "NXM_NX_CT_MARK"],
  ["ct_label", NXM1, 108, 16, 128, true, true, "hex", undefined, "NXM_NX_CT_LABEL"],
  ["tun_ipv6_src", NXM1, 109, 16, 128, true, true, "ip6", undefined, "NXM_NX_TUN_IPV6_SRC"],
  ["tun_ipv6_dst", NXM1, 110, 16, 128, true, true, "ip6", undefined, "NXM_NX_TUN_IPV6_DST"],
  ["ct_nw_proto", NXM1, 119, 1, 8, false, false, "decimal", "tracked", "NXM_NX_CT_NW_PROTO"],
  ["ct_nw_src", NXM1, 120, 4, 32, true, false, "ip4", "tracked", "NXM_NX_CT_NW_SRC"],
  ["ct_nw_dst", NXM1, 121, 4, 32, true, false, "ip4", "tracked", "NXM_NX_CT_NW_DST"],
  ["ct_ipv6_src", NXM1, 122, 16, 128, true, false, "ip6", "tracked", "NXM_NX_CT_IPV6_SRC"],
  ["ct_ipv6_dst", NXM1, 123, 16, 128, true, false, "ip6", "tracked", "NXM_NX_CT_IPV6_DST"],
  ["ct_tp_src", NXM1, 124, 2, 16, true, false, "decimal", "tracked", "NXM_NX_CT_TP_SRC"],
  ["ct_tp_dst", NXM1, 125, 2, 16, true, false, "decimal", "tracked", "NXM_NX_CT_TP_DST"],
] as const;

const registerRows = [
  ...numbers(16).map((n) => [`reg${n}`, NXM1, n, 4, 32, true, true, "hex", undefined, `NXM_NX_REG${n}`] as const),
  ...numbers(8).map(
    (n) => [`xreg${n}`, PKT_REG, n, 8, 64, true, true, "hex", undefined, `OXM_OF_PKT_REG${n}`] as const,
  ),
  ...numbers(4).map(
    (n) => [`xxreg${n}`, NXM1, 111 + n, 16, 128, true, true, "hex", undefined, `NXM_NX_XXREG${n}`] as const,
  ),
];

/** In the order in which a match is written: what others need comes before them. */
export const fields: readonly Field[] = [...rows, ...registerRows].map(
  ([name, oxmClass, code, bytes, bits, maskable, writable, notation, need, nxmName], rank) => ({
    rank,
    name: name as FieldName,
    oxmClass,
    code,
    bytes,
    bits,
    maskable,
    writable,
    notation,
    need,
    nxmName,
    ones: (1n << BigInt(bits)) - 1n,
    registers: registersIn(name),
  }),
);

/** What Open vSwitch may answer in place of ours: the same field in another class. */
const otherNames: readonly (readonly [FieldName, number, number])[] = [
  ["tcp_flags", OXM, 42],
  ["tun_id", NXM1, 16],
  ["nw_ecn", NXM1, 28],
  ["eth_dst", NXM0, 1],
  ["eth_src", NXM0, 2],
  ["eth_type", NXM0, 3],
  ["nw_proto", NXM0, 6],
  ["ip_src", NXM0, 7],
  ["ip_dst", NXM0, 8],
  ["tcp_src", NXM0, 9],
  ["tcp_dst", NXM0, 10],
  ["udp_src", NXM0, 11],
  ["udp_dst", NXM0, 12],
  ["icmp_type", NXM0, 13],
  ["icmp_code", NXM0, 14],
  ["arp_op", NXM0, 15],
  ["arp_spa", NXM0, 16],
  ["arp_tpa", NXM0, 17],
  ["arp_sha", NXM1, 17],
  ["arp_tha", NXM1, 18],
  ["ipv6_src", NXM1, 19],
  ["ipv6_dst", NXM1, 20],
  ["icmpv6_type", NXM1, 21],
  ["icmpv6_code", NXM1, 22],
  ["nd_target", NXM1, 23],
  ["nd_sll", NXM1, 24],
  ["nd_tll", NXM1, 25],
  ["ipv6_label", NXM1, 27],
];

const byName = new Map<string, Field>(fields.map((field) => [field.name, field]));
const byCode = new Map<number, Field>(fields.map((field) => [key(field.oxmClass, field.code), field]));
for (const [name, oxmClass, code] of otherNames) byCode.set(key(oxmClass, code), fieldOf(name));

export function fieldOf(name: FieldName): Field {
  const field = byName.get(name);
  if (field === undefined) throw new Error(`Broken invariant: there is no field "${name}"`);
  return field;
}

/** `undefined` for a field that is not in the table. */
export function fieldByCode(oxmClass: number, code: number): Field | undefined {
  return byCode.get(key(oxmClass, code));
}

/** `field` as a header without a mask, as actions name it. */
export function headerOf(field: Field): number {
  return ((field.oxmClass << 16) | (field.code << 9) | field.bytes) >>> 0;
}

/** Some consecutive bits of a field. */
export interface Bits {
  readonly field: Field;
  /** The lowest, from 0. */
  readonly from: number;
  readonly count: number;
}

function registersIn(name: string): Field["registers"] {
  const count = name.startsWith("xxreg") ? 4 : name.startsWith("xreg") ? 2 : 0;
  return count === 0 ? undefined : { first: Number(name.replace(/\D/g, "")) * count, count };
}

function key(oxmClass: number, code: number): number {
  return oxmClass * 128 + code;
}

function numbers(count: number): Register[] {
  return Array.from({ length: count }, (_, n) => n as Register);
}
