/**
 * Address arithmetic for IPv4 and IPv6 without any import, because every plugin start loads it. Tests compare it with
 * `ip-cidr`.
 */

export type Family = 4 | 6;

/** One address. Only `parseIp`, `ipOf` and the arithmetic here make one. */
export interface Ip {
  readonly family: Family;
  /** The address as an unsigned number: 32 bits for IPv4, 128 for IPv6. */
  readonly value: bigint;
}

/** An address with a prefix length; host bits may be set (an interface address) or not (a network). */
export interface Cidr {
  readonly ip: Ip;
  readonly prefix: number;
}

export const bitsOf = (family: Family): 32 | 128 => (family === 4 ? 32 : 128);

export function ipOf(family: Family, value: bigint): Ip {
  return { family, value };
}

/**
 * Reads one address; `undefined` where the text is not one. IPv4 octets with leading zeros are
 * refused (some readers take them for octal), zones (`fe80::1%eth0`) too; an IPv4-mapped IPv6
 * address (`::ffff:10.0.0.1`) is read as the IPv4 address, as Go's net package does.
 */
export function parseIp(text: string): Ip | undefined {
  if (!text.includes(":")) {
    const value = parse4(text);
    return value === undefined ? undefined : { family: 4, value };
  }
  const value = parse6(text);
  if (value === undefined) return undefined;
  return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffff_ffffn } : { family: 6, value };
}

/** In one pass over the text: each ADD reads an address, and pieces of the text cost more than its characters. */
function parse4(text: string): bigint | undefined {
  let value = 0;
  let octet = noOctet;
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === dot) {
      if (octet === noOctet) return undefined;
      value = value * 256 + octet;
      octet = noOctet;
      dots++;
    } else {
      // Nothing follows a zero at the front.
      if (code < digit0 || code > digit9 || octet === 0) return undefined;
      octet = (octet === noOctet ? 0 : octet * 10) + code - digit0;
      if (octet > 255) return undefined;
    }
  }
  return dots === 3 && octet !== noOctet ? BigInt(value * 256 + octet) : undefined;
}

const noOctet = -1;
const dot = 46;
const digit0 = 48;
const digit9 = 57;

function parse6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = groups6(halves[0] ?? "", halves.length === 1);
  const tail = halves.length === 2 ? groups6(halves[1] ?? "", true) : [];
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  let value = 0n;
  for (const group of head) value = (value << 16n) | BigInt(group);
  value <<= BigInt(16 * missing);
  for (const group of tail) value = (value << 16n) | BigInt(group);
  return value;
}

/** The 16-bit groups of one side of `::`; the last may be a dotted quad where `last` allows it. */
function groups6(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] ?? "";
    if (part.includes(".")) {
      const quad = last && i === parts.length - 1 ? parse4(part) : undefined;
      if (quad === undefined) return undefined;
      groups.push(Number(quad >> 16n), Number(quad & 0xffffn));
      continue;
    }
    if (part.length === 0 || part.length > 4) return undefined;
    const number = hexOf(part);
    if (number === undefined) return undefined;
    groups.push(number);
  }
  return groups;
}

function hexOf(text: string): number | undefined {
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i) | 32;
    const digit =
      code >= 97 && code <= 102
        ? code - 87
        : text.charCodeAt(i) >= 48 && text.charCodeAt(i) <= 57
          ? text.charCodeAt(i) - 48
          : -1;
    if (digit < 0) return undefined;
    value = value * 16 + digit;
  }
  return value;
}

/** The canonical text: dotted quad, or RFC 5952 (lower case, longest run of zeros compressed). */
export function formatIp(ip: Ip): string {
  if (ip.family === 4) {
    const v = Number(ip.value);
    return `${v >>> 24}.${(v >>> 16) & 255}.${(v >>> 8) & 255}.${v & 255}`;
  }
  const groups: number[] = [];
  for (let shift = 112n; shift >= 0n; shift -= 16n) groups.push(Number((ip.value >> shift) & 0xffffn));
  const run = longestZeroRun(groups);
  const hex = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((g) => g.toString(16))
      .join(":");
  return run === undefined ? hex(0, 8) : `${hex(0, run.from)}::${hex(run.to, 8)}`;
}

function longestZeroRun(groups: readonly number[]): { from: number; to: number } | undefined {
  let best: { from: number; to: number } | undefined;
  for (let from = 0; from < 8; from++) {
    let to = from;
    while (to < 8 && groups[to] === 0) to++;
    if (to - from >= 2 && (best === undefined || to - from > best.to - best.from)) best = { from, to };
    if (to > from) from = to;
  }
  return best;
}

/** Reads `address/prefix`; `undefined` where the text is not one. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  if (slash < 0) return undefined;
  const addressText = text.slice(0, slash);
  const ip = parseIp(addressText);
  const prefixText = text.slice(slash + 1);
  if (ip === undefined || prefixText.length === 0 || prefixText.length > 3) return undefined;
  for (let i = 0; i < prefixText.length; i++) {
    const code = prefixText.charCodeAt(i);
    if (code < 48 || code > 57) return undefined;
  }
  if (prefixText.length > 1 && prefixText[0] === "0") return undefined;
  const prefix = Number(prefixText);
  // A mapped address keeps its 128-bit prefix, which no IPv4 network can have.
  if (ip.family === 4 && addressText.includes(":")) return undefined;
  return prefix > bitsOf(ip.family) ? undefined : { ip, prefix };
}

export function formatCidr(cidr: Cidr): string {
  return `${formatIp(cidr.ip)}/${cidr.prefix}`;
}

const hostMask = (cidr: Cidr): bigint => (1n << BigInt(bitsOf(cidr.ip.family) - cidr.prefix)) - 1n;

/** The same of IPv4 as 32 bits: numbers of any length cost the interpreter ten times as much. */
const hostMask4 = (prefix: number): number => (prefix === 0 ? -1 : (1 << (32 - prefix)) - 1);

/** The lowest address of the block: all host bits zero. */
export function firstOf(cidr: Cidr): Ip {
  return { family: cidr.ip.family, value: cidr.ip.value & ~hostMask(cidr) };
}

/** The highest address of the block: all host bits one (IPv4: the broadcast address). */
export function lastOf({ ip, prefix }: Cidr): Ip {
  if (ip.family === 4) return { family: 4, value: BigInt((Number(ip.value) | hostMask4(prefix)) >>> 0) };
  return { family: 6, value: ip.value | hostMask({ ip, prefix }) };
}

export function contains(cidr: Cidr, ip: Ip): boolean {
  if (ip.family !== cidr.ip.family) return false;
  if (ip.family === 4) {
    const number = Number(ip.value);
    // One behind the family's last lies in no block.
    return number <= 0xffff_ffff && ((number ^ Number(cidr.ip.value)) & ~hostMask4(cidr.prefix)) === 0;
  }
  const hostBits = BigInt(bitsOf(ip.family) - cidr.prefix);
  return ip.value >> hostBits === cidr.ip.value >> hostBits;
}

/** Whether two blocks share an address: then one of them holds the other. */
export const overlap = (a: Cidr, b: Cidr): boolean => contains(a, b.ip) || contains(b, a.ip);

/** One address as a block. */
export const hostBlock = (ip: Ip): Cidr => ({ ip, prefix: bitsOf(ip.family) });

export function sameIp(a: Ip, b: Ip): boolean {
  return a.family === b.family && a.value === b.value;
}

/** The address `by` further on. The caller stays inside the family's range. */
export function plus(ip: Ip, by: bigint): Ip {
  return { family: ip.family, value: ip.value + by };
}

/** The first address behind the subnet's own: the gateway of its pods where nothing else is configured, as in host-local. */
export const gatewayIn = (subnet: Cidr): Ip => plus(firstOf(subnet), 1n);
