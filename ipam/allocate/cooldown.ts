import { limits } from "../../shared/limits.ts";
import type { Lease } from "../lease.ts";
import type { Store } from "../store/store.ts";

/**
 * Cooled-down leases that one allocation deletes: more than one allocation adds, so that none pile up, and few enough
 * that its cost stays the same.
 */
const maxClearedPerAllocation = 32;

/** The part of a store that is read here; a snapshot has it too. */
type Marks = Pick<Store, "mark">;

/** The mark with the network's cooldown in milliseconds; absent where it is the default. */
const cooldownMark = (network: string): string => `cooldown ${network}`;

/** Stores an ADD's cooldown for commands that read the leases without a configuration. */
export function noteCooldown(store: Store, network: string, cooldownMs: number): void {
  if (cooldownOf(store, network) === cooldownMs) return;
  store.setMark(cooldownMark(network), cooldownMs === limits.cooldownMs ? undefined : String(cooldownMs));
}

/** The cooldown of the network's latest ADD, in milliseconds. */
export function cooldownOf(store: Marks, network: string): number {
  const noted = Number(store.mark(cooldownMark(network)) ?? "none");
  // Anything but a number in bounds counts as the default. No regular expression here: the first one of a process costs
  // an ADD too much.
  return noted >= 0 && noted <= limits.longestCooldownMs ? noted : limits.cooldownMs;
}

/** Leases that were released at this time or before have cooled long enough. */
export const cooledBy = (nowMs: number, cooldownMs: number): number => nowMs - cooldownMs;

/**
 * A test for leases whose cooldown is over. Their addresses are free; an ADD deletes the rows later.
 * @param configured used in place of the cooldown of the network's latest ADD
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

/**
 * Deletes a bounded number of rows each time, so that an allocation costs the same however many leases were released
 * before.
 */
export function clearCooled(store: Store, network: string, releasedByMs: number): void {
  const cooled = store.select({ by: "cooled", network, releasedByMs, limit: maxClearedPerAllocation });
  for (const lease of cooled) store.remove(lease);
}
