/** Numbers and times as people read them. */

/** Made once, as the clock below: a browser takes longer for them than for all that a view writes with them. */
const digits = new Intl.NumberFormat("en");

export const grouped = (value: number): string => digits.format(value);

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${grouped(count)} ${count === 1 ? one : many}`;

/** Of time that has passed. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** Of microseconds. */
export function duration(micros: number): string {
  if (micros < 1000) return `${micros} µs`;
  if (micros < 1_000_000) return `${(micros / 1000).toPrecision(3)} ms`;
  return `${(micros / 1_000_000).toPrecision(3)} s`;
}

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

export const time = (ms: number): string => clock.format(ms);
export const zonedTime = (ms: number): string => new Date(ms).toISOString();

export const percent = (part: number, whole: number): string =>
  whole === 0 ? "–" : `${((100 * part) / whole).toFixed(part > 0 && part / whole < 0.1 ? 1 : 0)} %`;

/** The smallest value that so many of a hundred do not exceed; `undefined` of none. */
export function percentile(values: readonly number[], of100: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * of100) / 100))];
}

/** A list cut after so many, with the number of the others. */
export function listed(texts: readonly string[], most = 3): string {
  const more = texts.length - most;
  return more > 0 ? `${texts.slice(0, most).join(", ")} and ${more} more` : texts.join(", ");
}
