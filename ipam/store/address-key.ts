import { assert } from "../../shared/assert.ts";
import { type Ip, ipOf } from "../../shared/net/ip.ts";

/**
 * Addresses as the database keeps them: 16 bytes, high byte first, IPv4 in its IPv4-mapped place
 * (`::ffff:a.b.c.d`, which `parseIp` never answers as IPv6). SQLite compares blobs byte by byte, so
 * both families sort by value, in half the room that text of fixed width would take in every index.
 */
export type AddressKey = Uint8Array;

const mapped = 0xffffn << 32n;
const keyBytes = 16;
/** Where the four bytes of an IPv4 address are, behind two of 255. */
const ipv4At = 12;

export function keyOf(ip: Ip): AddressKey {
  const number = Number(ip.value);
  // One behind the family's last has a key too.
  if (ip.family === 6 || number > 0xffff_ffff) return keyOfNumber(numberOf(ip));
  // An ADD makes several, and each step with a number of any length is a call into the engine.
  const key = new Uint8Array(keyBytes);
  key[10] = 255;
  key[11] = 255;
  key[ipv4At] = number >>> 24;
  key[ipv4At + 1] = number >>> 16;
  key[ipv4At + 2] = number >>> 8;
  key[ipv4At + 3] = number;
  return key;
}

/** The 128-bit number behind a key. */
export const numberOf = (ip: Ip): bigint => (ip.family === 4 ? ip.value + mapped : ip.value);

/** The last IPv6 address; no key lies behind it. */
export const lastNumber = (1n << 128n) - 1n;

export function keyOfNumber(number: bigint): AddressKey {
  assert(number >= 0n && number <= lastNumber, "a number with a key is one of an address");
  const view = new DataView(new ArrayBuffer(keyBytes));
  view.setBigUint64(0, number >> 64n);
  view.setBigUint64(8, number & 0xffff_ffff_ffff_ffffn);
  return new Uint8Array(view.buffer);
}

/** The key of the next address; of the last one of all its own. Without a number of any length, as in `keyOf`. */
export function keyBehind(key: AddressKey): AddressKey {
  const next = key.slice();
  for (let i = keyBytes - 1; i >= 0; i--) {
    const byte = next[i] ?? 0;
    next[i] = byte + 1;
    if (byte < 255) return next;
  }
  return key;
}

/** The key of the address before; of the first one of all its own. */
export function keyBefore(key: AddressKey): AddressKey {
  const previous = key.slice();
  for (let i = keyBytes - 1; i >= 0; i--) {
    const byte = previous[i] ?? 0;
    previous[i] = byte - 1;
    if (byte > 0) return previous;
  }
  return key;
}

export function numberOfKey(key: AddressKey): bigint {
  const view = new DataView(key.buffer, key.byteOffset, 16);
  return (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
}

export function ipOfKey(key: AddressKey): Ip {
  if (!isIpv4(key)) return ipOf(6, numberOfKey(key));
  let number = 0;
  for (let i = ipv4At; i < keyBytes; i++) number = number * 256 + (key[i] ?? 0);
  return ipOf(4, BigInt(number));
}

function isIpv4(key: AddressKey): boolean {
  for (let i = 0; i < 10; i++) if (key[i] !== 0) return false;
  return key[10] === 255 && key[11] === 255;
}

/** The address of this number in the given family; may lie beyond that family's last. */
export const ipOfNumber = (family: Ip["family"], number: bigint): Ip =>
  ipOf(family, family === 4 ? number - mapped : number);

/**
 * The distance from one address to a later one, exact below 2^48, which is more than a node has leases side by side.
 */
export function distance(from: AddressKey, to: AddressKey): number {
  const difference = low48(to) - low48(from);
  return difference < 0 ? difference + 2 ** 48 : difference;
}

const low48 = (key: AddressKey): number => {
  let value = 0;
  for (let i = 10; i < 16; i++) value = value * 256 + (key[i] ?? 0);
  return value;
};
