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

/**
 * The same where clients keep their slots: no endpoint that stays is moved, so that theirs stays the same. A slot whose
 * endpoint has gone has another one's, until a new one takes it.
 */
export function arrangeKept(before: readonly (string | undefined)[], wanted: readonly string[]): readonly string[] {
  if (wanted.length === 0) return [];
  const left = new Map<string, number>();
  for (const one of wanted) left.set(one, (left.get(one) ?? 0) + 1);
  const take = (one: string | undefined): string | undefined => {
    const count = one === undefined ? 0 : (left.get(one) ?? 0);
    if (one === undefined || count === 0) return undefined;
    left.set(one, count - 1);
    return one;
  };
  const slots = Array.from(before, take);
  const others = [...left].flatMap(([one, count]) => Array.from({ length: count }, () => one));
  const filled = slots.map((one) => one ?? others.shift());
  while (filled.length > 0 && filled.at(-1) === undefined) filled.pop();
  let next = 0;
  // What stood in for another goes on doing so.
  const isWanted = new Set(wanted);
  const standIn = (at: number): string => {
    const old = before[at];
    return old !== undefined && isWanted.has(old) ? old : (wanted[next++ % wanted.length] ?? "");
  };
  return [...filled.map((one, at) => one ?? standIn(at)), ...others];
}
