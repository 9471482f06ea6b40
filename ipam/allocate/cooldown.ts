import { limits } from "../../shared/limits.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";

/** Cooled-down leases that one allocation clears away: more than come in per allocation, and little enough to stay flat. */
const maxClearedPerAllocation = 32;

/** What a look needs to know; a snapshot of the store has it too. */
type Marks = Pick<Store, "mark">;

/** How long addresses of the network cool, in milliseconds: absent where that is the usual time. */
const cooldownMark = (network: string): string => `cooldown ${network}`;

/** Notes what an ADD was configured with, for those who look at the leases without any configuration. */
export function noteCooldown(store: Store, network: string, cooldownMs: number): void {
  if (cooldownOf(store, network) === cooldownMs) return;
  store.setMark(cooldownMark(network), cooldownMs === limits.cooldownMs ? undefined : String(cooldownMs));
}

/** As the network's latest ADD had it, in milliseconds. */
export function cooldownOf(store: Marks, network: string): number {
  const noted = Number(store.mark(cooldownMark(network)) ?? "none");
  // Whatever else stands there is no cooldown: the usual one holds. A first regular expression costs an ADD too much.
  return noted >= 0 && noted <= limits.longestCooldownMs ? noted : limits.cooldownMs;
}

/** The time at which the leases that have cooled long enough were released, or before. */
export const cooledBy = (nowMs: number, cooldownMs: number): number => nowMs - cooldownMs;

/**
 * Tells the leases whose cooldown is over at this moment. Their addresses are free: the rows only wait for the ADD that
 * clears them away.
 * @param configured counts more than what the network's latest ADD had
 */
export function cooledTest(
  store: Marks,
  nowMs: number,
  configured?: { readonly network: string; readonly cooldownMs: number },
): (lease: Lease) => boolean {
  const byNetwork = new Map<string, number>();
  if (configured !== undefined) byNetwork.set(configured.network, cooledBy(nowMs, configured.cooldownMs));
  return ({ owner: { network }, state, releasedAtMs = 0 }) => {
    if (state !== "cooling") return false;
    const releasedByMs = byNetwork.get(network) ?? cooledBy(nowMs, cooldownOf(store, network));
    byNetwork.set(network, releasedByMs);
    return releasedAtMs <= releasedByMs;
  };
}

/** Takes a bounded number of rows away each time, so that an allocation costs the same however many were released before. */
export function clearCooled(store: Store, network: string, releasedByMs: number): void {
  const cooled = store.select({ by: "cooling", network, releasedByMs, limit: maxClearedPerAllocation });
  for (const lease of cooled) store.remove(lease);
}
