import type { Lease } from "../../ipam/mod.ts";
import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import type { Attached, Missing } from "../datapath/datapath.ts";
import type { AgentContext } from "./agent-context.ts";
import { restoreLeases } from "./restore.ts";

/** The records of one owner, read while its mutex is held. */
export interface OwnerRecord {
  /** Its allocated leases. */
  readonly leases: readonly Lease[];
  /** Its leases that wait until the interface is removed. */
  readonly releasing: readonly Lease[];
  /** A DEL that did not reach this agent, of an attachment without a lease of ours. */
  readonly hasPendingDetach: boolean;
  /** An interface that this agent could not remove, or was about to remove. */
  readonly needsCleanup: boolean;
  /** When its last ADD began, as `AgentContext.lastAddAt` has it; absent where it is not attached. */
  readonly lastAddAt: number | undefined;
}

/** What to do with one owner's attachment. */
export type Decision =
  /** Nothing: it is as it should be, or another part handles it. */
  | { readonly t: "keep" }
  /**
   * Removes the interface, then lets the addresses cool. `first` says how this is recorded in case the data path fails:
   * the leases become `releasing`, or, without leases, the agent remembers the interface; absent: it is recorded
   * already, or will be found again.
   */
  | { readonly t: "detach"; readonly first?: "release" | "remember" }
  /** The addresses cool; no interface uses them. */
  | { readonly t: "cool" }
  /** The sandbox was added again: its interface stays, and the leases of the earlier attachment cool. */
  | { readonly t: "added again"; readonly cool: readonly Lease[] }
  /** The data path makes the interface again. @see DataPath.remake */
  | { readonly t: "remake"; readonly missing: Missing; readonly addresses: readonly Ip[] | undefined }
  /** Restores the lost leases of the interface. */
  | {
      readonly t: "restore";
      readonly attached: Attached;
      readonly network: NetworkConfig;
      readonly standing: ReadonlySet<string>;
    };

export const keep: Decision = { t: "keep" };

export interface ReconcileOwnerOptions<D extends Decision> {
  readonly owner: Owner;
  /** For messages: `giving back "<sandbox>"`. */
  readonly what: string;
  /** How long to wait for calls of the same owner; absent: without a bound. */
  readonly timeoutMs?: number;
  /**
   * Decides without changing anything. The reason for the request may be gone by now, so only the present record
   * counts.
   */
  decide(now: OwnerRecord): D | Promise<D>;
}

/**
 * The one way in which anything other than ADD, CHECK and DEL changes an attachment: waits for the owner's mutex, reads
 * its record again, decides by that, and carries the decision out.
 * @returns the decision; `undefined` if nothing had to be done, or could be
 * @throws {CniError} as the mutex and the data path do
 */
export function reconcileOwner<D extends Decision>(
  context: AgentContext,
  { owner, what, timeoutMs, decide }: ReconcileOwnerOptions<D>,
): Promise<D | undefined> {
  const options = { what, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  return context.mutex.run(ownerKey(owner), options, async () => {
    const decision = await decide(recordOf(context, owner));
    return (await carryOut(context, owner, decision)) ? decision : undefined;
  });
}

function recordOf({ allocator, pendingCleanup, lastAddAt }: AgentContext, owner: Owner): OwnerRecord {
  return {
    leases: allocator.find(owner),
    releasing: allocator.releasing(owner),
    hasPendingDetach: allocator.hasPendingDetach(owner),
    needsCleanup: pendingCleanup.has(ownerKey(owner)),
    lastAddAt: lastAddAt.get(ownerKey(owner)),
  };
}

/** Answers whether anything was done. */
async function carryOut(context: AgentContext, owner: Owner, decision: Decision): Promise<boolean> {
  const { allocator, dataPath, lastAddAt, pendingCleanup } = context;
  const key = ownerKey(owner);
  switch (decision.t) {
    case "keep":
      return false;
    case "detach":
      if (decision.first === "release") allocator.release(owner, "releasing");
      if (decision.first === "remember") pendingCleanup.set(key, owner);
      await detachAndEnd(context, owner);
      return true;
    case "cool":
      allocator.release(owner, "cooling");
      return true;
    case "added again":
      pendingCleanup.delete(key);
      for (const lease of decision.cool) allocator.finishRelease(lease);
      return decision.cool.length > 0;
    case "remake":
      if ((await dataPath.remake?.(decision.missing, decision.addresses)) !== true) return false;
      lastAddAt.set(key, lastAddAt.get(key) ?? 0);
      return true;
    case "restore":
      return restoreLeases(context, decision.network, decision.attached, decision.standing);
  }
}

/** While the owner's mutex is held: unwires, and only then lets the addresses cool. */
export async function detachAndEnd(context: AgentContext, owner: Owner): Promise<void> {
  const had = context.allocator.uncooled(owner);
  await context.dataPath.detach(owner);
  context.lastAddAt.delete(ownerKey(owner));
  context.pendingCleanup.delete(ownerKey(owner));
  context.allocator.endAttachment(owner, had);
}

/** Whether an interface of ours stands. */
export const hasInterface = async ({ dataPath }: AgentContext, owner: Owner): Promise<boolean> =>
  (await dataPath.list()).some((attached) => sameOwner(attached.owner, owner));
