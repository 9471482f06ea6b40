import type { Lease } from "../../ipam/mod.ts";
import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Ip } from "../../shared/net/ip.ts";
import type { NetworkConfig } from "../config/agent-config.ts";
import type { Attached, Missing } from "../datapath/datapath.ts";
import type { AgentContext } from "./agent-context.ts";
import { restoreLeases } from "./restore.ts";

/** What is on record of one owner, read while nobody else works on it. */
export interface OwnerRecord {
  /** Its allocated leases. */
  readonly leases: readonly Lease[];
  /** Its leases that wait for the interface to go. */
  readonly releasing: readonly Lease[];
  /** A DEL that this agent has not heard, of an attachment that has no lease to remember it by. */
  readonly hasPendingDetach: boolean;
  /** An interface that this agent could not take away, or was about to. */
  readonly needsCleanup: boolean;
  /** When its last ADD began, as `AgentContext.lastAddAt` has it; absent where it is not attached. */
  readonly lastAddAt: number | undefined;
}

/** What is to become of one owner's attachment. */
export type Decision =
  /** It is as it should be, or somebody else's turn. */
  | { readonly t: "keep" }
  /**
   * The interface goes, then the addresses cool. `first` says what keeps this from being forgotten where the data path
   * refuses: the leases become `releasing`, or, where there are none, the agent remembers the interface; absent: it
   * is on record already, or will be noticed again.
   */
  | { readonly t: "detach"; readonly first?: "release" | "remember" }
  /** The addresses cool; no interface uses them. */
  | { readonly t: "cool" }
  /** The sandbox was added again: its interface stays, and what its earlier life had left cools. */
  | { readonly t: "added again"; readonly cool: readonly Lease[] }
  /** The data path makes the interface again. @see DataPath.remake */
  | { readonly t: "remake"; readonly missing: Missing; readonly addresses: readonly Ip[] | undefined }
  /** The interface gets its lost leases back. */
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
  /** How long it waits for calls of the same owner; absent: as long as they take. */
  readonly timeoutMs?: number;
  /** Looks, and changes nothing. What it was asked for may be long over: only the record as it is now counts. */
  decide(now: OwnerRecord): D | Promise<D>;
}

/**
 * The one way in which anything beside ADD, CHECK and DEL changes an attachment: waits for the owner's mutex, reads its
 * record anew, decides by that, and does what was decided.
 * @returns the decision; `undefined` where nothing was to be done, or could be
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
    hasPendingDetach: allocator.departures().some((other) => sameOwner(other, owner)),
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
      for (const lease of decision.cool) allocator.settle(lease);
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
  const had = context.allocator.standing(owner);
  await context.dataPath.detach(owner);
  context.lastAddAt.delete(ownerKey(owner));
  context.pendingCleanup.delete(ownerKey(owner));
  context.allocator.end(owner, had);
}

/** Whether an interface of ours stands. */
export const hasInterface = async ({ dataPath }: AgentContext, owner: Owner): Promise<boolean> =>
  (await dataPath.list()).some((attached) => sameOwner(attached.owner, owner));
