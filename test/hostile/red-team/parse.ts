/**
 * Reads frames for the model of the rules, which is why it shares nothing with what builds them. It looks further than
 * a switch does: behind every extension header, also those that a switch takes for the end of the chain.
 */

/** Hex digits without separators: quick to compare, and a prefix of whole digits is the beginning of the text. */
export type Hex = string;

export interface Frame {
  readonly destination: Hex;
  readonly source: Hex;
  readonly tags: number;
  /** Behind all tags; below 0x600 it is a length, of an LLC frame. */
  readonly type: number;
  /** Both only where enough bytes are there for the addresses. */
  readonly arp?: Arp;
  readonly ip?: Ip;
}

export interface Arp {
  /** Of Ethernet and IPv4, with a question or an answer. */
  readonly usual: boolean;
  readonly senderMac: Hex;
  readonly sender: Hex;
  readonly target: Hex;
}

export interface Ip {
  readonly family: 4 | 6;
  readonly source: Hex;
  readonly destination: Hex;
  /** What the chain of headers ends in; absent where it does not end in this packet. */
  readonly protocol?: number;
  readonly fragment: "whole" | "first" | "later";
  /** What follows all headers. */
  readonly payload: Uint8Array;
}

const vlanTypes = new Set([0x8100, 0x88a8, 0x9100, 0x9200, 0x9300]);

const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
const hex = (bytes: Uint8Array, from: number, to: number): Hex =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex", from, to);

export function parseFrame(bytes: Uint8Array): Frame {
  let at = 12;
  let tags = 0;
  while (vlanTypes.has(u16(bytes, at)) && at + 6 <= bytes.length) {
    tags++;
    at += 4;
  }
  const type = u16(bytes, at);
  const payload = bytes.subarray(at + 2);
  const arp = type === 0x0806 ? parseArp(payload) : undefined;
  const ip = type === 0x0800 ? parseIpv4(payload) : type === 0x86dd ? parseIpv6(payload) : undefined;
  return {
    destination: hex(bytes, 0, 6),
    source: hex(bytes, 6, 12),
    tags,
    type,
    ...(arp === undefined ? {} : { arp }),
    ...(ip === undefined ? {} : { ip }),
  };
}

function parseArp(bytes: Uint8Array): Arp | undefined {
  if (bytes.length < 28) return undefined;
  const operation = u16(bytes, 6);
  const usual = hex(bytes, 0, 6) === "000108000604" && (operation === 1 || operation === 2);
  return { usual, senderMac: hex(bytes, 8, 14), sender: hex(bytes, 14, 18), target: hex(bytes, 24, 28) };
}

function parseIpv4(bytes: Uint8Array): Ip | undefined {
  if (bytes.length < 20) return undefined;
  const words = (bytes[0] ?? 0) & 15;
  // A lie about its own length: what stands behind the shortest header.
  const headBytes = words >= 5 && words * 4 <= bytes.length ? words * 4 : 20;
  const flags = u16(bytes, 6);
  const fragment = (flags & 0x1fff) > 0 ? "later" : (flags & 0x2000) > 0 ? "first" : "whole";
  return {
    family: 4,
    source: hex(bytes, 12, 16),
    destination: hex(bytes, 16, 20),
    protocol: bytes[9] ?? 0,
    fragment,
    payload: bytes.subarray(headBytes),
  };
}

/** Extension headers with a length of their own in units of 8 bytes: hop-by-hop, routing, destination, mobility, HIP, shim6. */
const eights = new Set([0, 43, 60, 135, 139, 140]);
const fragmentHeader = 44;
const authentication = 51;

function parseIpv6(bytes: Uint8Array): Ip | undefined {
  if (bytes.length < 40) return undefined;
  const ends = { source: hex(bytes, 8, 24), destination: hex(bytes, 24, 40) };
  let next = bytes[6] ?? 0;
  let at = 40;
  let fragment: Ip["fragment"] = "whole";
  for (;;) {
    const isHeader = eights.has(next) || next === fragmentHeader || next === authentication;
    if (!isHeader || fragment === "later") break;
    if (at + 8 > bytes.length) return { family: 6, ...ends, fragment, payload: new Uint8Array() };
    if (next === fragmentHeader) {
      const offset = u16(bytes, at + 2);
      // One without more and without offset is whole (RFC 6946).
      fragment = offset >> 3 > 0 ? "later" : (offset & 1) > 0 ? "first" : fragment;
    }
    const length = bytes[at + 1] ?? 0;
    const size = next === fragmentHeader ? 8 : next === authentication ? (length + 2) * 4 : (length + 1) * 8;
    next = bytes[at] ?? 0;
    at += size;
    if (at > bytes.length) return { family: 6, ...ends, fragment, payload: new Uint8Array() };
  }
  return { family: 6, ...ends, protocol: next, fragment, payload: bytes.subarray(at) };
}

/** Of UDP and TCP, where they stand in this packet. */
export function portsOf(ip: Ip): { readonly from: number; readonly to: number } | undefined {
  if ((ip.protocol !== 17 && ip.protocol !== 6) || ip.fragment === "later" || ip.payload.length < 4) return undefined;
  return { from: u16(ip.payload, 0), to: u16(ip.payload, 2) };
}

export interface Icmp {
  readonly type: number;
  /** Of neighbour discovery: whom it is about, and the MACs that its options give for that address. */
  readonly target?: Hex;
  readonly macs: readonly Hex[];
}

export function icmpOf(ip: Ip): Icmp | undefined {
  if (ip.protocol !== (ip.family === 4 ? 1 : 58) || ip.fragment === "later" || ip.payload.length < 1) return undefined;
  const type = ip.payload[0] ?? 0;
  const isNeighbour = ip.family === 6 && (type === 135 || type === 136);
  if (!isNeighbour || ip.payload.length < 24) return { type, macs: [] };
  return { type, target: hex(ip.payload, 8, 24), macs: linkLayerAddresses(ip.payload.subarray(24)) };
}

/** Of the options 1 and 2 (RFC 4861, 4.6.1). */
function linkLayerAddresses(options: Uint8Array): readonly Hex[] {
  const found: Hex[] = [];
  for (let at = 0; at + 8 <= options.length; ) {
    const size = (options[at + 1] ?? 0) * 8;
    if (size === 0) break;
    if (options[at] === 1 || options[at] === 2) found.push(hex(options, at + 2, at + 8));
    at += size;
  }
  return found;
}

/** What a tunnel packet carries, where this is one: the outer addresses are the packet's own. */
export function innerFrame(ip: Ip): Frame | undefined {
  const to = ip.protocol === 17 ? portsOf(ip)?.to : undefined;
  const data = ip.payload.subarray(8);
  if (to === 6081 && data.length >= 8) return parseInner(data.subarray(8 + ((data[0] ?? 0) & 0x3f) * 4));
  if (to === 4789 && data.length >= 8) return parseInner(data.subarray(8));
  if (ip.protocol === 47 && u16(ip.payload, 2) === 0x6558) {
    // Checksum, key and number are there where a flag says so (RFC 2890).
    const optional = [0x80, 0x20, 0x10].filter((flag) => ((ip.payload[0] ?? 0) & flag) !== 0);
    return parseInner(ip.payload.subarray(4 + 4 * optional.length));
  }
  return undefined;
}

const parseInner = (bytes: Uint8Array): Frame | undefined => (bytes.length < 14 ? undefined : parseFrame(bytes));
