import type { Allocator } from "../ipam/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { type Call, ownerOf } from "./call.ts";

/**
 * Makes a DEL durable that the agent did not answer: its lease becomes `releasing`, and where no lease of ours can say
 * it, a pending detach is recorded. The agent finds either and takes the interface away.
 */
export async function recordPendingDetach(call: Call): Promise<void> {
  for (;;) {
    try {
      using allocator = await openStore(call);
      const owner = ownerOf(call);
      if (allocator.release(owner, "releasing").length === 0) allocator.recordPendingDetach(owner);
      return;
    } catch (caught) {
      // Where a whole node is drained without its agent the lock may be wanted by hundreds. What the agent was not
      // waited for is left for it: a DEL that fails comes again, and keeps its pod in the runtime's hands.
      const isLocked = CniError.from(caught).code === CniCode.tryAgainLater;
      if (!isLocked || performance.now() - call.startedMs > call.conf.delTimeoutMs) throw caught;
    }
  }
}

/** Gives up what an ADD without an answer has allocated, if it came so far; older leases of the owner stay. */
export async function rollbackAllocation(call: Call): Promise<void> {
  using allocator = await openStore(call);
  const leases = allocator.find(ownerOf(call)).filter(({ allocatedAtMs }) => isDuring(call, allocatedAtMs));
  allocator.undo({ leases, created: true }, "releasing");
}

/**
 * Whether that was while the call ran, by the clock as it was at its start or as it is now: somebody may have set it.
 * A lease whose time lies ahead is from before the clock was set back, and its pod may live.
 */
function isDuring({ startedAtMs, startedMs }: Call, timeMs: number): boolean {
  const lastedMs = Math.ceil(performance.now() - startedMs);
  return [startedAtMs, Date.now() - lastedMs].some((from) => timeMs >= from && timeMs <= from + lastedMs + 1);
}

/** The store that the agent has open too. */
export async function openStore(call: Call): Promise<Allocator> {
  const { dataDirOf } = await import("../ipam/mod.ts");
  let dataDir = call.conf.dataDir;
  try {
    if (call.conf.ipam.kind === "own") dataDir = dataDirOf(call.request.conf);
  } catch (caught) {
    // DEL and GC must be able to finish with a section that cannot be read.
    call.log.warn(CniError.from(caught).message);
  }
  return call.surroundings.openStore(dataDir);
}
