import { isStaleLease, type Lease } from "../../ipam/mod.ts";
import { ownerKey, sameOwner } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { AgentParts } from "./agent-parts.ts";
import { allocatedLeases } from "./allocated-leases.ts";
import { detachAndEnd } from "./departed.ts";
import { type Source, unknownTo } from "./sources.ts";

/** An owner that had an interface of ours, which is gone, and its leases as they were seen. */
export interface Vanished {
  readonly owner: Owner;
  readonly leases: readonly Lease[];
}

/**
 * Attachments of this boot whose interface has gone without a DEL. Some runtimes never send one: containerd drops a
 * sandbox whose network it could not make and could not take away either, because a plugin later in the list fails both
 * times, and makes the next one, which takes the next address. The namespace's end took the interface with it.
 *
 * What never had an interface is never among them: a lease may be a program's or a person's own.
 */
export class VanishedAttachments {
  readonly #sources: readonly Source[];
  readonly #graceMs: number;
  /** Since when each interface is missing, on the monotonic clock. */
  readonly #missingSinceMs = new Map<string, number>();

  constructor(sources: readonly Source[], graceMs: number) {
    this.#sources = sources;
    this.#graceMs = graceMs;
  }

  /**
   * Those that have been missing at every look for longer than the grace, and whose addresses no source knows.
   * @param wanted addresses are: then there is no grace. It only leaves DELs their time, and the log its quiet.
   */
  async due(parts: AgentParts, wanted = false): Promise<readonly Vanished[]> {
    const { allocator, lanes } = parts;
    const standing = new Set((await parts.dataPath.list()).map(({ owner }) => ownerKey(owner)));
    // A call that is under way may be just about to make the interface, and nobody is to wait behind it for nothing.
    const isAbsent = ({ owner }: Lease): boolean => !standing.has(ownerKey(owner)) && !lanes.isBusy(ownerKey(owner));
    const missing = allocatedLeases(
      parts,
      (lease) => isAbsent(lease) && !isStaleLease(lease, allocator.bootId) && allocator.hasInterface(lease),
    );
    const keys = new Set(missing.map(({ owner }) => ownerKey(owner)));
    for (const key of this.#missingSinceMs.keys()) if (!keys.has(key)) this.#missingSinceMs.delete(key);
    const now = performance.now();
    for (const key of keys) if (!this.#missingSinceMs.has(key)) this.#missingSinceMs.set(key, now);
    const graceMs = wanted ? 0 : this.#graceMs;
    const late = missing.filter(({ owner }) => now - (this.#missingSinceMs.get(ownerKey(owner)) ?? now) >= graceMs);
    if (late.length === 0) return [];
    const unknown = new Set(await unknownTo(this.#sources, late));
    const found = Map.groupBy(late, ({ owner }) => ownerKey(owner));
    // An owner that is known by one of its addresses keeps all of them.
    return [...found.values()].flatMap((leases): Vanished[] => {
      const [first] = leases;
      return first !== undefined && leases.every((lease) => unknown.has(lease)) ? [{ owner: first.owner, leases }] : [];
    });
  }
}

/** In the owner's lane, where an ADD that came meanwhile has made its interface. Answers whether anything was given back. */
export function endVanished(parts: AgentParts, { owner, leases }: Vanished): Promise<boolean> {
  return parts.lanes.run(ownerKey(owner), { what: `giving back "${owner.sandboxId}"` }, async () => {
    const held = parts.allocator.find(owner);
    const same = held.every(({ generation }) => leases.some((lease) => lease.generation === generation));
    if (held.length === 0 || !same) return false;
    if ((await parts.dataPath.list()).some((attached) => sameOwner(attached.owner, owner))) return false;
    // What belongs to the interface may stand still, such as a port of the switch.
    await detachAndEnd(parts, owner);
    return true;
  });
}
