import { assert } from "../../shared/assert.ts";
import { type Ip, ipOf } from "../../shared/net/ip.ts";

/**
 * Addresses as the database keeps them: 16 bytes, high byte first, IPv4 in its IPv4-mapped place
 * (`::ffff:a.b.c.d`, which `parseIp` never answers as IPv6). SQLite compares blobs byte by byte, so
 * both families sort by value, in half the room that text of fixed width would take in every index.
 */
export type AddressKey = Uint8Array;

const mapped = 0xffffn << 32n;

export const keyOf = (ip: Ip): AddressKey => keyOfNumber(numberOf(ip));

/** The 128-bit number behind a key. */
export const numberOf = (ip: Ip): bigint => (ip.family === 4 ? ip.value + mapped : ip.value);

/** The last IPv6 address; no key lies behind it. */
export const lastNumber = (1n << 128n) - 1n;

export function keyOfNumber(number: bigint): AddressKey {
  assert(number >= 0n && number <= lastNumber, "a number with a key is one of an address");
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, number >> 64n);
  view.setBigUint64(8, number & 0xffff_ffff_ffff_ffffn);
  return new Uint8Array(view.buffer);
}

export function numberOfKey(key: AddressKey): bigint {
  const view = new DataView(key.buffer, key.byteOffset, 16);
  return (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
}

export function ipOfKey(key: AddressKey): Ip {
  const number = numberOfKey(key);
  return number >> 32n === 0xffffn ? ipOf(4, number - mapped) : ipOf(6, number);
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
