import { isStaleLease, type Lease } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Attached } from "../datapath/datapath.ts";

/** The state of a node at the agent's start. As long as an interface exists, so does its namespace. */
export interface ObservedNode {
  /** Of every network, in every state. */
  readonly leases: readonly Lease[];
  readonly interfaces: readonly Attached[];
  readonly pendingDetaches: readonly Owner[];
  /** Names of the configured networks. */
  readonly networks: readonly string[];
  readonly bootId: string;
}

export interface ReconcilePlan {
  /** Interfaces that are right as they are. */
  readonly adopt: readonly Attached[];
  /** Owners that have left: their interface is removed, their addresses cool. */
  readonly finish: readonly Owner[];
  /** Interfaces of ours whose owner has left: its lease is cooling. */
  readonly orphans: readonly Attached[];
  /**
   * Interfaces of ours without a lease in the store: a running pod must not lose its network because a lease was lost.
   */
  readonly restore: readonly Attached[];
  /** Interfaces that are left alone because their state is unclear, with the reason. */
  readonly doubtful: readonly { readonly attached: Attached; readonly reason: string }[];
  /** Allocated in this boot, without an interface: the runtime will send a DEL, or the janitor ends them. */
  readonly missing: readonly Lease[];
  /** Allocated in an earlier boot, without an interface: released when nobody claims them for a while. */
  readonly stale: readonly Lease[];
}

/** Makes the plan and changes nothing. Networks that this agent does not serve are never touched. */
export function planReconcile(node: ObservedNode): ReconcilePlan {
  const leaving = new Map<string, Owner>();
  const allocated = new Set<string>();
  const cooling = new Set<string>();
  for (const lease of node.leases) {
    if (lease.state === "allocated") allocated.add(ownerKey(lease.owner));
    if (lease.state === "releasing") leaving.set(ownerKey(lease.owner), lease.owner);
    if (lease.state === "cooling") cooling.add(ownerKey(lease.owner));
  }
  // An ADD that came after the DEL has the lease again; the interface is then its own.
  for (const key of allocated) leaving.delete(key);
  // An ADD deletes an earlier pending detach before it begins, so a recorded one came after it.
  for (const owner of node.pendingDetaches) leaving.set(ownerKey(owner), owner);

  const adopt: Attached[] = [];
  const orphans: Attached[] = [];
  const restore: Attached[] = [];
  const doubtful: { attached: Attached; reason: string }[] = [];
  for (const attached of node.interfaces) {
    const key = ownerKey(attached.owner);
    const { network } = attached.owner;
    if (leaving.has(key)) continue;
    if (!attached.ownLease || allocated.has(key)) adopt.push(attached);
    else if (!node.networks.includes(network))
      doubtful.push({ attached, reason: `network "${network}" is not configured here` });
    else if (cooling.has(key)) orphans.push(attached);
    else restore.push(attached);
  }
  const standing = new Set(node.interfaces.map((attached) => ownerKey(attached.owner)));
  const bare = node.leases.filter(
    (lease) =>
      lease.state === "allocated" &&
      node.networks.includes(lease.owner.network) &&
      !standing.has(ownerKey(lease.owner)),
  );
  return {
    adopt,
    finish: [...leaving.values()],
    orphans,
    restore,
    doubtful,
    missing: bare.filter((lease) => !isStaleLease(lease, node.bootId)),
    stale: bare.filter((lease) => isStaleLease(lease, node.bootId)),
  };
}
