import type { Endpoint } from "../../services.ts";

/** Slots of endpoints whose weights differ: so fine are their shares. */
const maxWeighedSlots = 256;

const divisorOf = (a: number, b: number): number => (b === 0 ? a : divisorOf(b, a % b));

/** How many slots each endpoint has, of which a packet draws one: one where all weigh the same, and never none. */
export function slotCounts(endpoints: readonly Pick<Endpoint, "weight">[]): readonly number[] {
  const weights = endpoints.map(({ weight }) => weight);
  const unit = weights.reduce(divisorOf, 0);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const most = Math.max(maxWeighedSlots, endpoints.length);
  if (total / unit <= most) return weights.map((weight) => weight / unit);
  return weights.map((weight) => Math.max(1, Math.round((weight / total) * most)));
}

/**
 * Puts endpoints into slots from 0 on without a gap. Those that have a slot keep it as far as that can be, so that a
 * change costs as much as it changes.
 * @param before what the slots hold now; something unknown holds none
 * @param wanted each as often as it has slots
 */
export function arrange(before: readonly (string | undefined)[], wanted: readonly string[]): readonly string[] {
  const left = new Map<string, number>();
  for (const one of wanted) left.set(one, (left.get(one) ?? 0) + 1);
  const slots: (string | undefined)[] = [];
  for (let at = 0; at < wanted.length; at++) {
    const one = before[at];
    const count = one === undefined ? 0 : (left.get(one) ?? 0);
    slots.push(count === 0 ? undefined : one);
    if (one !== undefined && count > 0) left.set(one, count - 1);
  }
  const others = [...left].flatMap(([one, count]) => Array.from({ length: count }, () => one));
  return slots.map((one) => one ?? others.shift() ?? "");
}
