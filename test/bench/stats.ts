export interface Summary {
  readonly n: number;
  readonly median: number;
  readonly p90: number;
  readonly p99: number;
  readonly min: number;
  readonly max: number;
}

/** The value below which the share `q` of the sorted values lies (nearest rank). */
function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function summarize(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  const [median, p90, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.9), quantile(sorted, 0.99)];
  return { n: sorted.length, median, p90, p99, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN };
}
