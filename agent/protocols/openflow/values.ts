import { formatIp, type Ip, ipOf } from "../../../shared/net/ip.ts";
import type { Field } from "./fields.ts";
import { InvalidFlow } from "./openflow-error.ts";

/** What a field may be given as: a number, an address of its family, or a MAC as text. */
export type FieldValue = number | bigint | Ip | string;

/** The value as a number of the field's width. @throws {InvalidFlow} */
export function valueFor(field: Field, value: FieldValue): bigint {
  const number = numberOf(field, value);
  if (number < 0n || number > field.ones) {
    throw new InvalidFlow(`a flow with ${field.name}`, `${shown(value)} is too large, wanted ${field.bits} bits`);
  }
  return number;
}

function numberOf(field: Field, value: FieldValue): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return BigInt(value);
    throw new InvalidFlow(`a flow with ${field.name}`, `${value} is given, wanted a whole number`);
  }
  if (typeof value === "string") {
    if (field.notation === "mac" && /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(value)) {
      return BigInt(`0x${value.replaceAll(":", "")}`);
    }
    throw new InvalidFlow(`a flow with ${field.name}`, `"${value}" is given, wanted ${wantedOf(field)}`);
  }
  const bits = value.family === 4 ? 32 : 128;
  // Registers, metadata and labels take addresses too; a field that is an address takes its own family only.
  const fits = field.notation === "hex" ? bits <= field.bits : field.notation === `ip${value.family}`;
  if (!fits)
    throw new InvalidFlow(`a flow with ${field.name}`, `"${formatIp(value)}" is given, wanted ${wantedOf(field)}`);
  return value.value;
}

const wantedOf = (field: Field): string =>
  ({ mac: "six pairs of hex digits", ip4: "an IPv4 address", ip6: "an IPv6 address" })[field.notation as string] ??
  `a number of ${field.bits} bits`;

const shown = (value: FieldValue): string =>
  typeof value === "object" ? formatIp(value) : typeof value === "string" ? `"${value}"` : `0x${value.toString(16)}`;

/** `0x1f`; zero is "0", as C's "%#x" writes it. */
export const hex = (value: bigint): string => (value === 0n ? "0" : `0x${value.toString(16)}`);

export const hexWide = (value: bigint, digits: number): string => `0x${value.toString(16).padStart(digits, "0")}`;

export function macText(value: bigint): string {
  return value
    .toString(16)
    .padStart(12, "0")
    .replace(/..(?!$)/g, "$&:");
}

export const ip4Text = (value: bigint): string => formatIp(ipOf(4, value));

/** As inet_ntop writes it, which shows the last 32 bits of some addresses as dotted quads. */
export function ip6Text(value: bigint): string {
  const high = value >> 32n;
  const low = value & 0xffff_ffffn;
  if (high === 0xffffn) return low === 0n ? "::ffff:0.0.0.0" : ip4Text(low);
  if (high === 0n && low > 0xffffn) return `::${ip4Text(low)}`;
  return formatIp(ipOf(6, value));
}

/** The length of the prefix that the mask is, or `undefined` where it has holes. */
export function prefixOf(mask: bigint, bits: number): number | undefined {
  const inverted = mask ^ ((1n << BigInt(bits)) - 1n);
  if ((inverted & (inverted + 1n)) !== 0n) return undefined;
  return inverted === 0n ? bits : bits - inverted.toString(2).length;
}

const flagNames = {
  "ct-state": ["new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"],
  "tcp-flags": ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"],
  tunnel: ["oam"],
} as const;

export type FlagNotation = keyof typeof flagNames;

/** The number of a flag's bit, `undefined` where there is no such flag. */
export function flagBit(notation: FlagNotation, name: string): bigint | undefined {
  const at = (flagNames[notation] as readonly string[]).indexOf(name);
  return at < 0 ? undefined : 1n << BigInt(at);
}

/** `+new-rpl`; `new|trk` where the mask has all flags of the field. */
export function flagsText(notation: FlagNotation, value: bigint, mask: bigint, all: bigint): string {
  const names: readonly string[] = flagNames[notation];
  if (mask === all) {
    const set = names.filter((_, i) => (value >> BigInt(i)) & 1n);
    return set.length === 0 ? "0" : set.join("|");
  }
  let text = "";
  for (let i = 0; mask >> BigInt(i) !== 0n; i++) {
    if (((mask >> BigInt(i)) & 1n) === 0n) continue;
    text += `${(value >> BigInt(i)) & 1n ? "+" : "-"}${names[i] ?? "[Unknown]"}`;
  }
  return text;
}

/** How `set_field` and `learn` write a value (mf_format of Open vSwitch). */
export function fieldText(field: Field, value: bigint, mask: bigint): string {
  const exact = mask === field.ones;
  switch (field.notation) {
    case "mac":
      return macText(value) + (exact ? "" : `/${macText(mask)}`);
    case "ip4":
      return masked4(value, mask);
    case "ip6":
      return masked6(value, mask);
    case "decimal":
      return value.toString() + (exact ? "" : `/${hex(mask)}`);
    case "ct-state":
    case "tcp-flags":
    case "tunnel":
      return flagsText(field.notation, value, mask, field.ones);
    default:
      return hex(value) + (exact ? "" : `/${hex(mask)}`);
  }
}

export function masked4(value: bigint, mask: bigint): string {
  const prefix = prefixOf(mask, 32);
  if (prefix === 32) return ip4Text(value);
  return `${ip4Text(value)}/${prefix ?? ip4Text(mask)}`;
}

export function masked6(value: bigint, mask: bigint): string {
  const prefix = prefixOf(mask, 128);
  if (prefix === 128) return ip6Text(value);
  return `${ip6Text(value)}/${prefix ?? ip6Text(mask)}`;
}
