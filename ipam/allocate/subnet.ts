import { bitsOf, type Ip } from "../../shared/net/ip.ts";
import { type RangeSet, rangeOf } from "../config/ranges.ts";
import type { Lease } from "../lease.ts";

/** A lease that was taken over without its network's ranges has the address alone; no range is that small. */
export const hasSubnet = ({ address }: Lease): boolean => address.prefix < bitsOf(address.ip.family);

/** What the ranges say about an address; `undefined` where none has it. */
export function subnetOf(
  sets: readonly RangeSet[],
  ip: Ip,
): Pick<Lease, "rangeSet" | "address" | "gateway"> | undefined {
  for (const [rangeSet, set] of sets.entries()) {
    const range = rangeOf(set, ip);
    if (range !== undefined) return { rangeSet, address: { ip, prefix: range.subnet.prefix }, gateway: range.gateway };
  }
  return undefined;
}
