import { bitsOf, type Cidr, type Family, type Ip, ipOf } from "../../../shared/net/ip.ts";
import { MalformedMessage } from "./message-reader.ts";

/** An address as the wire has it: 4 or 16 bytes, highest first. */
export function ipBytes(ip: Ip): Uint8Array {
  if (ip.family === 4) {
    const value = Number(ip.value);
    // Piece by piece: `Uint8Array.of` takes the interpreter four times as long.
    const bytes = new Uint8Array(4);
    bytes[0] = value >>> 24;
    bytes[1] = value >>> 16;
    bytes[2] = value >>> 8;
    bytes[3] = value;
    return bytes;
  }
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, ip.value >> 64n);
  view.setBigUint64(8, BigInt.asUintN(64, ip.value));
  return new Uint8Array(view.buffer);
}

/** An address with its prefix length as the kernel tells it. @throws {MalformedMessage} where it has no such length */
export function cidrOf(ip: Ip, prefix: number): Cidr {
  if (prefix <= bitsOf(ip.family)) return { ip, prefix };
  throw new MalformedMessage(
    `A prefix of an IPv${ip.family} address has ${prefix} bits, wanted ${bitsOf(ip.family)} at most`,
  );
}

/** `undefined` where the length fits no family. */
export function ipFromBytes(bytes: Uint8Array): Ip | undefined {
  const family: Family | undefined = bytes.length === 4 ? 4 : bytes.length === 16 ? 6 : undefined;
  if (family === undefined) return undefined;
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return ipOf(family, value);
}
