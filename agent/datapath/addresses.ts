import { CniCode, CniError } from "../../shared/errors.ts";
import { type Cidr, contains, formatCidr, gatewayIn, type Ip, ipOf } from "../../shared/net/ip.ts";

/** Valid only inside of a host, where services listen that trust it. */
export const loopback = {
  4: { ip: ipOf(4, 0x7f00_0000n), prefix: 8 },
  6: { ip: ipOf(6, 1n), prefix: 128 },
} as const satisfies Record<4 | 6, Cidr>;

export const multicast = {
  4: { ip: ipOf(4, 0xe000_0000n), prefix: 4 },
  6: { ip: ipOf(6, 0xffn << 120n), prefix: 8 },
} as const satisfies Record<4 | 6, Cidr>;

/** Broadcast to every host on the link. */
export const broadcast: Cidr = { ip: ipOf(4, 0xffff_ffffn), prefix: 32 };

/** IPv6 link-local addresses; each interface has one. */
export const linkLocal6: Cidr = { ip: ipOf(6, 0xfe80n << 112n), prefix: 10 };

/** The unspecified address, which is never a destination. */
export const unspecified6: Cidr = { ip: ipOf(6, 0n), prefix: 128 };

/** The first address of the block, with the block's prefix length. */
export function gatewayAddress(subnet: Cidr): Cidr {
  const ip = gatewayIn(subnet);
  if (!contains(subnet, ip)) {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot use the subnet "${formatCidr(subnet)}": it has no room for a gateway, wanted a larger block`,
    );
  }
  return { ip, prefix: subnet.prefix };
}

/** The same as `linkLocalOf`, in 16 bytes: to make them of a number costs ten times as much. */
export function linkLocalBytes(mac: Uint8Array): Uint8Array {
  const ip = new Uint8Array(16);
  ip[0] = 0xfe;
  ip[1] = 0x80;
  ip.set(mac.subarray(0, 3), 8);
  ip[8] = (mac[0] ?? 0) ^ 0x02;
  ip[11] = 0xff;
  ip[12] = 0xfe;
  ip.set(mac.subarray(3, 6), 13);
  return ip;
}

/** The link-local address that an interface derives from its MAC (RFC 4291, appendix A). */
export function linkLocalOf(mac: string): Ip {
  const bits = BigInt(`0x${mac.replaceAll(":", "")}`);
  const [vendor, own] = [(bits >> 24n) ^ 0x02_0000n, bits & 0xff_ffffn];
  return ipOf(6, (0xfe80n << 112n) | (vendor << 40n) | (0xfffen << 24n) | own);
}
