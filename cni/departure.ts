import { Allocator } from "../ipam/mod.ts";
import { type Call, ownerOf } from "./call.ts";

/**
 * Leaves word that an attachment is given up, where no lease of ours can say it: another IPAM
 * plugin keeps the address, and the agent did not answer. It finds the note and takes the interface away.
 */
export async function recordDeparture(call: Call): Promise<void> {
  using allocator = await Allocator.open(call.conf.dataDir, { lifetime: "call" });
  allocator.recordDeparture(ownerOf(call));
}
