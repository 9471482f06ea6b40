import { Allocator } from "../../ipam/mod.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatCidr } from "../../shared/net/ip.ts";

/** What the store holds, read beside the plugin as the agent does it. */
export async function leasesIn(dataDir: string) {
  using allocator = await Allocator.open(dataDir);
  return allocator.list().map(({ address, state, owner }) => ({
    address: formatCidr(address),
    state,
    containerId: owner.sandboxId,
  }));
}

export async function pendingDetachesIn(dataDir: string): Promise<readonly Owner[]> {
  using allocator = await Allocator.open(dataDir);
  return allocator.pendingDetaches();
}
