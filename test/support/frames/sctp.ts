import { bytes, u16, u32 } from "./frame.ts";

const polynomial = 0x82f63b78;
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? polynomial : 0);
  return value;
});

/** CRC32c, which kernels check before they follow an association. */
function crc32c(data: Uint8Array): number {
  let sum = 0xffff_ffff;
  for (const byte of data) sum = (sum >>> 8) ^ (table[(sum ^ byte) & 0xff] ?? 0);
  return ~sum >>> 0;
}

/** The packet that opens an SCTP association (RFC 9260, 3.3.2), with its checksum. */
export function sctpInit(ports: { readonly from: number; readonly to: number }): Uint8Array {
  const chunk = bytes([1, 0], u16(20), u32(0x0101), u32(65_536), u16(1), u16(1), u32(1));
  const packet = bytes(u16(ports.from), u16(ports.to), u32(0), u32(0), chunk);
  new DataView(packet.buffer).setUint32(8, crc32c(packet), true);
  return packet;
}
