import type { Lease } from "../../ipam/mod.ts";
import type { AgentContext } from "./agent-context.ts";

/**
 * The allocated leases of the agent's networks that `is` takes. A page at a time: programs may have taken a million
 * through the service, and the janitor looks every few seconds.
 */
export function allocatedLeases(
  { allocator, config }: Pick<AgentContext, "allocator" | "config">,
  is: (lease: Lease) => boolean,
): readonly Lease[] {
  const found: Lease[] = [];
  for (const { name } of config.networks)
    for (const page of allocator.pages(name))
      for (const lease of page) if (lease.state === "allocated" && is(lease)) found.push(lease);
  return found;
}
