import { type Ip, ipOf } from "../../shared/net/ip.ts";

/** The address that an interface makes itself of its MAC (RFC 4291, appendix A). */
export function linkLocalOf(mac: string): Ip {
  const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n] = mac.split(":").map((pair) => BigInt(`0x${pair}`));
  const octets = [a ^ 2n, b, c, 0xffn, 0xfen, d, e, f];
  return ipOf(
    6,
    octets.reduce((sum, octet) => (sum << 8n) | octet, 0xfe80n << 48n),
  );
}
