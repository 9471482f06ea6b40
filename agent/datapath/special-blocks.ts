import { type Cidr, ipOf } from "../../shared/net/ip.ts";

/** Means something inside of a host only, where services listen that trust it. */
export const loopback = {
  4: { ip: ipOf(4, 0x7f00_0000n), prefix: 8 },
  6: { ip: ipOf(6, 1n), prefix: 128 },
} as const satisfies Record<4 | 6, Cidr>;

export const multicast = {
  4: { ip: ipOf(4, 0xe000_0000n), prefix: 4 },
  6: { ip: ipOf(6, 0xffn << 120n), prefix: 8 },
} as const satisfies Record<4 | 6, Cidr>;

/** To all on a link, whichever. */
export const broadcast: Cidr = { ip: ipOf(4, 0xffff_ffffn), prefix: 32 };

/** Of one link, and of IPv6: each interface has one. */
export const linkLocal6: Cidr = { ip: ipOf(6, 0xfe80n << 112n), prefix: 10 };

/** "None yet": never somebody to send to. */
export const unspecified6: Cidr = { ip: ipOf(6, 0n), prefix: 128 };
