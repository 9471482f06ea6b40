import { bytes, type Ends, ipv6, type Part, u16, u32 } from "./frame.ts";

/** Numbers of IPv6's extension headers (IANA, "IPv6 Extension Header Types"). */
export const Extension = {
  hopByHop: 0,
  routing: 43,
  fragment: 44,
  esp: 50,
  authentication: 51,
  destination: 60,
  mobility: 135,
  hip: 139,
  shim6: 140,
  experiment1: 253,
  experiment2: 254,
} as const;
export type Extension = (typeof Extension)[keyof typeof Extension];

/** An option that only fills (RFC 8200, 4.2: PadN), of `length` bytes in all. */
const padding = (length: number): Part => [1, length - 2, ...Array<number>(length - 2).fill(0)];

/** One extension header that leads on to `next`, as short as it can be. */
export function extension(kind: Extension, next: number): Uint8Array {
  switch (kind) {
    case Extension.hopByHop:
    case Extension.destination:
      return bytes([next, 0], padding(6));
    case Extension.routing:
      // Type 4 with no segment left: whoever gets it is the last (RFC 8754).
      return bytes([next, 0, 4, 0, 0, 0, 0, 0]);
    case Extension.fragment:
      return bytes([next, 0], u16(0), u32(7));
    case Extension.authentication:
      return bytes([next, 1, 0, 0], u32(1), u32(1));
    default:
      // Mobility, HIP and shim6 begin alike: next header, length, type.
      return bytes([next, 0, 0, 0, 0, 0, 0, 0]);
  }
}

/** An IPv6 packet whose payload stands behind these headers. */
export function behind(ends: Ends, kinds: readonly Extension[], protocol: number, payload: Part, hops = 255) {
  const headers = kinds.map((kind, i) => extension(kind, kinds[i + 1] ?? protocol));
  return ipv6(ends, kinds[0] ?? protocol, bytes(...headers, payload), hops);
}
