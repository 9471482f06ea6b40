import type { Allocator } from "./allocator.ts";
import type { Lease } from "./lease.ts";

/** Where a boot has no name (`""`) nothing is held against a lease. */
export const ofAnotherBoot = (lease: Lease, bootId: string): boolean =>
  bootId !== "" && lease.bootId !== "" && lease.bootId !== bootId;

/** Whether leases of an earlier boot are left in the network, which give way before its pool counts as exhausted. */
export function hasSuspects(allocator: Pick<Allocator, "pages" | "bootId">, network: string): boolean {
  for (const page of allocator.pages(network))
    if (page.some((lease) => lease.state === "allocated" && ofAnotherBoot(lease, allocator.bootId))) return true;
  return false;
}
