import type { PluginIo } from "../shared/cni/dispatch.ts";

/** The `pipette-ipam` face: one CNI call as an IPAM plugin; answers the exit status. */
export async function runIpamPlugin(_io: PluginIo): Promise<number> {
  throw new Error("Broken invariant: the IPAM plugin is not wired up yet");
}
