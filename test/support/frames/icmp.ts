import { address, bytes, checksum, type Ends, icmp6, type Part, u16, u32 } from "./frame.ts";

/** An ICMP message of IPv4 with its checksum. @param body what follows type, code and checksum */
export function icmp4(type: number, body: Part, code = 0): Uint8Array {
  const message = bytes([type, code, 0, 0], body);
  message.set(u16(checksum(message)), 2);
  return message;
}

/** A link-layer address option of neighbour discovery. @param kind 1: the source's, 2: the target's */
const macOption = (kind: 1 | 2, hardware: Part): Uint8Array => bytes([kind, 1], hardware);

/** A router advertisement (RFC 4861, 4.2) that promises a default route and an address out of `prefix`. */
export const routerAdvertisement = (ends: Ends, prefix: string, hardware: Part): Uint8Array =>
  icmp6(
    ends,
    134,
    bytes(
      [64, 0, 0x07, 0x08, ...u32(0), ...u32(0)],
      macOption(1, hardware),
      [3, 4, 64, 0xc0, ...u32(3600), ...u32(3600), ...u32(0)],
      address(prefix),
    ),
  );

/** A neighbour advertisement (4.4): `target` is at `hardware`, whatever was known before. */
export const neighbourAdvertisement = (ends: Ends, target: string, hardware: Part): Uint8Array =>
  icmp6(ends, 136, bytes([0x60, 0, 0, 0], address(target), macOption(2, hardware)));

/** A redirect (4.5): `destination` is better reached by `target`. */
export const redirect6 = (ends: Ends, target: string, destination: string): Uint8Array =>
  icmp6(ends, 137, bytes(u32(0), address(target), address(destination)));
