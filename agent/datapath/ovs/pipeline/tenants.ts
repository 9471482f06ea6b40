import { type Flow, match } from "../../../openflow/mod.ts";
import { Priority, step } from "./build.ts";
import type { PipelineContext } from "./context.ts";
import { registers } from "./registers.ts";

/**
 * Projects are told apart where the packet arrives, by the VNID that the sender's node has put on it: 0, the node and
 * privileged projects, reaches and is reached by all. ARP and neighbour discovery are answered across projects, which
 * tells no more than that an address is in use.
 */
export function tenantFlows({ multitenant }: PipelineContext): Flow[] {
  if (!multitenant) return [step("TenantIsolation", Priority.miss, match(), [], "ConntrackCommit")];
  const passing = [registers.sourceTenant, registers.destinationTenant].map((tenant) =>
    step("TenantIsolation", Priority.high, match().bits(tenant, 0), [], "ConntrackCommit"),
  );
  return [...passing, step("TenantIsolation", Priority.miss, match(), [])];
}

/** What a pod's own project may send it. Matched by its port, so that the flow comes and goes with the pod. */
export const podTenantFlow = (ofport: number, vnid: number): Flow =>
  step(
    "TenantIsolation",
    Priority.normal,
    match().bits(registers.sourceTenant, vnid).bits(registers.outputPort, ofport),
    [],
    "ConntrackCommit",
  );
