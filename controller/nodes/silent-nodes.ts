import { type ApiObject, mapIn, mapsIn, textIn } from "../../shared/kubernetes/mod.ts";
import { nodeLease } from "../../shared/presence.ts";

/** What is to be done about nodes, after a look at all of them. */
export interface NodeChanges {
  /** Their Node is gone, and they are silent: nobody would write them any more. */
  readonly remove: readonly string[];
  /** Leases likewise. */
  readonly removeLeases: readonly string[];
  /** They say nothing, and their objects do not say so yet. */
  readonly silent: readonly { readonly name: string; readonly conditions: readonly object[] }[];
  readonly nodes: number;
  readonly silentNow: number;
}

const reason = "AgentSilent";

/**
 * Knows when each Lease was seen to change last, by this process's own clock, so that clocks need not agree. What was
 * never seen to change is given its whole time from the first look on.
 */
export class SilentNodes {
  readonly #silentMs: number;
  readonly #seen = new Map<string, { readonly renewed: string; readonly atMs: number }>();

  constructor(silentMs: number) {
    this.#silentMs = silentMs;
  }

  /** @param nodes names of the Nodes that there are @param nowMs of a clock that does not step */
  judge(
    {
      objects,
      leases,
      nodes,
    }: { objects: readonly ApiObject[]; leases: readonly ApiObject[]; nodes: ReadonlySet<string> },
    nowMs: number,
  ): NodeChanges {
    const renewed = new Map(
      leases.map((lease) => [nameOf(lease), textIn(mapIn(lease, "spec") ?? {}, "renewTime") ?? ""]),
    );
    const isSilent = (lease: string): boolean => {
      const time = renewed.get(lease) ?? "";
      const seen = this.#seen.get(lease);
      if (seen?.renewed !== time) this.#seen.set(lease, { renewed: time, atMs: nowMs });
      return seen?.renewed === time && nowMs - seen.atMs >= this.#silentMs;
    };
    const known = objects.map((object) => ({
      object,
      name: nameOf(object),
      isSilent: isSilent(nodeLease(nameOf(object))),
    }));
    const ours = new Set(known.map(({ name }) => nodeLease(name)));
    const gone = (name: string): boolean => !nodes.has(name);
    // Whoever can label a Lease of somebody else's must not have it taken away.
    const isNodes = (lease: string): boolean => lease.startsWith(nodeLease(""));
    const left = [...renewed.keys()].filter((lease) => isNodes(lease) && !ours.has(lease) && isSilent(lease));
    const removed = known.filter(({ name, isSilent }) => isSilent && gone(name)).map(({ name }) => name);
    const staying = known.filter(({ name }) => !removed.includes(name));
    for (const lease of this.#seen.keys()) if (!renewed.has(lease) && !ours.has(lease)) this.#seen.delete(lease);
    return {
      remove: removed,
      removeLeases: [...removed.map(nodeLease).filter((lease) => renewed.has(lease)), ...left],
      silent: staying
        .filter(({ object, isSilent }) => isSilent && !saysSo(object))
        .map(({ object, name }) => ({ name, conditions: unknownOf(object) })),
      nodes: staying.length,
      silentNow: staying.filter((one) => one.isSilent).length,
    };
  }
}

const nameOf = (object: ApiObject): string => textIn(mapIn(object, "metadata") ?? {}, "name") ?? "";

const conditionsOf = (object: ApiObject): readonly ApiObject[] => mapsIn(mapIn(object, "status") ?? {}, "conditions");

const saysSo = (object: ApiObject): boolean =>
  conditionsOf(object).some(({ type, status }) => type === "Ready" && status === "Unknown");

/** Each condition that it had, and Ready in any case: none of them is known any more. */
function unknownOf(object: ApiObject): readonly object[] {
  const types = new Set(["Ready", ...conditionsOf(object).flatMap((one) => textIn(one, "type") ?? [])]);
  const lastTransitionTime = `${new Date().toISOString().slice(0, 19)}Z`;
  const message = "the node's agent has not renewed its Lease";
  return [...types].map((type) => ({ type, status: "Unknown", reason, message, lastTransitionTime }));
}
