import { type Lease, ofAnotherBoot } from "../../ipam/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { Attached } from "../datapath/datapath.ts";

/** What is known of a node at the agent's start. An interface's namespace lives as long as the interface does. */
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
  /** Right as they are. */
  readonly adopt: readonly Attached[];
  /** Owners that have left: their interface goes, their addresses cool. */
  readonly finish: readonly Owner[];
  /** Interfaces of ours whose owner has left: its lease cools. */
  readonly orphans: readonly Attached[];
  /** Interfaces of ours of which the store knows nothing: a pod that lives must not lose its network because a lease was lost. */
  readonly restore: readonly Attached[];
  /** Interfaces that are left alone, with the reason, because nobody can be sure. */
  readonly doubtful: readonly { readonly attached: Attached; readonly reason: string }[];
  /** Allocated in this boot, without an interface: their runtime will send DEL, or the janitor sees that none comes. */
  readonly missing: readonly Lease[];
  /** Allocated in an earlier boot, without an interface: given back when nobody claims them for a while. */
  readonly stale: readonly Lease[];
}

/** Decides, and does nothing. What is of a network that this agent does not serve is never touched. */
export function planReconcile(node: ObservedNode): ReconcilePlan {
  const departed = new Map<string, Owner>();
  const allocated = new Set<string>();
  const cooling = new Set<string>();
  for (const lease of node.leases) {
    if (lease.state === "allocated") allocated.add(ownerKey(lease.owner));
    if (lease.state === "releasing") departed.set(ownerKey(lease.owner), lease.owner);
    if (lease.state === "cooling") cooling.add(ownerKey(lease.owner));
  }
  // An ADD that came after the DEL has the lease again; the interface is then its own.
  for (const key of allocated) departed.delete(key);
  // An ADD strikes an earlier departure off before it begins: what is on record came after it.
  for (const owner of node.pendingDetaches) departed.set(ownerKey(owner), owner);

  const adopt: Attached[] = [];
  const orphans: Attached[] = [];
  const restore: Attached[] = [];
  const doubtful: { attached: Attached; reason: string }[] = [];
  for (const attached of node.interfaces) {
    const key = ownerKey(attached.owner);
    const { network } = attached.owner;
    if (departed.has(key)) continue;
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
    finish: [...departed.values()],
    orphans,
    restore,
    doubtful,
    missing: bare.filter((lease) => !ofAnotherBoot(lease, node.bootId)),
    stale: bare.filter((lease) => ofAnotherBoot(lease, node.bootId)),
  };
}
