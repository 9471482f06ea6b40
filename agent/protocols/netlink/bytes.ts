import { bitsOf, type Cidr, type Family, type Ip, ipOf } from "../../../shared/net/ip.ts";
import { MalformedMessage } from "./message-reader.ts";

/** An address as the wire has it: 4 or 16 bytes, highest first. */
export function ipBytes(ip: Ip): Uint8Array {
  const bytes = new Uint8Array(ip.family === 4 ? 4 : 16);
  let rest = ip.value;
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
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
