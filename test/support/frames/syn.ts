import { address, bytes, checksum, type Ends, Protocol, u16, u32 } from "./frame.ts";

/** The segment that opens a TCP connection, with its checksum. @param ends addresses of either family */
export function syn(ends: Ends, ports: { readonly from: number; readonly to: number }): Uint8Array {
  const segment = bytes(u16(ports.from), u16(ports.to), u32(1), u32(0), [0x50, 0x02], u16(65_535), [0, 0, 0, 0]);
  const pseudo = bytes(address(ends.from), address(ends.to), u32(segment.length), [0, 0, 0, Protocol.tcp], segment);
  segment.set(u16(checksum(pseudo)), 16);
  return segment;
}
