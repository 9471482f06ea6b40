import type { Allocator } from "../ipam/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { type Call, ownerOf } from "./call.ts";

/**
 * Makes a DEL durable that the agent did not answer: its lease becomes `releasing`, or, without a lease of ours, a
 * pending detach is recorded. The agent finds either later and removes the interface.
 */
export async function recordPendingDetach(call: Call): Promise<void> {
  for (;;) {
    try {
      using allocator = await openStore(call);
      const owner = ownerOf(call);
      if (allocator.release(owner, "releasing").length === 0) allocator.recordPendingDetach(owner);
      return;
    } catch (caught) {
      // When a node is drained without its agent, hundreds of plugins may wait for this lock. The time that is left of
      // the agent's deadline is used for it, because a DEL that fails leaves the pod with the runtime until it is
      // repeated.
      const isLocked = CniError.from(caught).code === CniCode.tryAgainLater;
      if (!isLocked || performance.now() - call.startedMs > call.conf.delTimeoutMs) throw caught;
    }
  }
}

/** Releases what an unanswered ADD may have allocated; older leases of the owner stay. */
export async function rollbackAllocation(call: Call): Promise<void> {
  using allocator = await openStore(call);
  const leases = allocator.find(ownerOf(call)).filter(({ allocatedAtMs }) => isDuring(call, allocatedAtMs));
  allocator.undo({ leases, created: true }, "releasing");
}

/**
 * Whether that time lies within the call, by the clock as it was at its start or as it is now, since it may have been
 * set meanwhile. A lease with a time in the future is from before the clock was set back, and its pod may be running.
 */
function isDuring({ startedAtMs, startedMs }: Call, timeMs: number): boolean {
  const lastedMs = Math.ceil(performance.now() - startedMs);
  return [startedAtMs, Date.now() - lastedMs].some((from) => timeMs >= from && timeMs <= from + lastedMs + 1);
}

/** The store that the agent has open too. Its code is loaded here because most calls never need it. */
export async function openStore(call: Call): Promise<Allocator> {
  const { dataDirOf } = await import("../ipam/mod.ts");
  let dataDir = call.conf.dataDir;
  try {
    if (call.conf.ipam.kind === "own") dataDir = dataDirOf(call.request.conf);
  } catch (caught) {
    // DEL and GC must be able to finish also when the `ipam` section cannot be read.
    call.log.warn(CniError.from(caught).message);
  }
  return call.context.openStore(dataDir);
}
