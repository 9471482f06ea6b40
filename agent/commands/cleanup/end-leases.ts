import { Allocator } from "../../../ipam/mod.ts";
import { CniError } from "../../../shared/errors.ts";
import { counted } from "../../../shared/terminal/printable.ts";
import type { HostChange } from "../../datapath/host-change.ts";

/**
 * Lets the addresses of pods whose interfaces a clean-up has taken away cool, since no agent will: the next may be of
 * another subnet. What a program or a person took without an interface stays theirs. For holders of the agent's lock.
 * @param networks names
 */
export async function endLeases(dataDir: string, networks: readonly string[]): Promise<readonly HostChange[]> {
  const step = "leases";
  try {
    using allocator = await Allocator.openExisting(dataDir);
    if (allocator === undefined) return [];
    let ended = 0;
    for (const network of networks)
      for (const page of allocator.pages(network))
        for (const lease of page) {
          if (lease.state === "releasing") ended += Number(allocator.finishRelease(lease));
          // All that the owner has: an interface stood on these leases together.
          else if (lease.state === "allocated" && allocator.hasInterface(lease))
            ended += allocator.release(lease.owner, "cooling").length;
        }
    for (const owner of allocator.pendingDetaches())
      if (networks.includes(owner.network)) allocator.forgetPendingDetach(owner);
    return ended === 0 ? [] : [{ step, what: `${counted(ended, "lease")} of pods`, did: "undone" }];
  } catch (caught) {
    return [{ step, what: "leases of pods", did: "failed", problem: CniError.from(caught).message }];
  }
}
