/** Calls that took no longer than this, and longer than the bucket before. */
export interface Bucket {
  readonly upToMicros: number;
  readonly count: number;
}

/** From half a millisecond to half a minute, by one, two and five: what differs in kind stands apart. */
const bounds = [
  500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
  10_000_000, 30_000_000,
];

/** Only those between the first and the last that hold something; what is longer than all counts in the last. */
export function bucketsOf(micros: readonly number[]): readonly Bucket[] {
  const counts = bounds.map(() => 0);
  for (const each of micros) {
    const found = bounds.findIndex((bound) => each <= bound);
    const place = found < 0 ? bounds.length - 1 : found;
    counts[place] = (counts[place] ?? 0) + 1;
  }
  const first = counts.findIndex((count) => count > 0);
  const last = counts.findLastIndex((count) => count > 0);
  return bounds.slice(first, last + 1).map((upToMicros, i) => ({ upToMicros, count: counts[first + i] ?? 0 }));
}
