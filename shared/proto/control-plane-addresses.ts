import { bitsOf, type Ip, ipOf } from "../net/ip.ts";
import { WireError } from "./wire.ts";

/** Addresses as the messages of a controller of network policies have them: as Go's types do. */

const mappedPrefix = 0xffffn;

/** 16 bytes, IPv4 addresses as IPv4-mapped ones: members of groups are compared by them. */
export function ipBytes({ family, value }: Ip): Uint8Array {
  const bytes = new Uint8Array(bitsOf(6) / 8);
  const mapped = family === 4 ? (mappedPrefix << BigInt(bitsOf(4))) | value : value;
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, mapped >> 64n);
  view.setBigUint64(8, BigInt.asUintN(64, mapped));
  return bytes;
}

/** Also of 4 bytes. @throws {WireError} */
export function readIp(bytes: Uint8Array): Ip {
  if (bytes.length !== 4 && bytes.length !== 16)
    throw new WireError(`Cannot read an address: it has ${bytes.length} bytes, wanted 4 or 16`);
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  if (bytes.length === 4) return ipOf(4, value);
  return value >> 32n === mappedPrefix ? ipOf(4, value & 0xffff_ffffn) : ipOf(6, value);
}
