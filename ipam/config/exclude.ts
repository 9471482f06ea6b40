import type { CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import { firstOf, formatCidr, lastOf, parseCidr, parseIp } from "../../shared/net/ip.ts";
import type { Fields } from "../../shared/schema/json-fields.ts";
import { type Interval, overlap } from "./intervals.ts";
import type { Range } from "./ranges.ts";

/** One entry of an `exclude`: an address, or a block. */
export interface Exclusion {
  readonly run: Interval;
  /** Makes the error for this entry, which names its place in the configuration. */
  refuse(wanted: string): CniError;
}

/**
 * Reads `exclude`: addresses and blocks that are never given out; `undefined` where there is none.
 * @throws {CniError} code 7 naming the entry
 */
export function parseExclude(fields: Fields): readonly Exclusion[] | undefined {
  const entries = fields.array("exclude", (value, path): Exclusion => {
    const refuse = (wanted: string): CniError => fields.wrongAt(path, value, wanted);
    if (typeof value !== "string") throw refuse("a string");
    const ip = parseIp(value);
    if (ip !== undefined) return { run: { first: ip, last: ip }, refuse };
    const block = parseCidr(value);
    if (block === undefined) throw refuse('an address or a block, such as "10.1.2.3" or "10.1.2.16/28"');
    const first = firstOf(block);
    if (first.value !== block.ip.value)
      throw refuse(`"${formatCidr({ ip: first, prefix: block.prefix })}", without host bits`);
    return { run: { first, last: lastOf(block) }, refuse };
  });
  if (entries !== undefined && entries.length > limits.excludeEntries) {
    const most = `${limits.excludeEntries} at most; a block counts as one`;
    throw fields.refused(fields.pathOf("exclude"), `${entries.length} entries long`, most);
  }
  return entries;
}

/**
 * @throws {CniError} code 7 where an entry excludes nothing, a mistake that would otherwise show only when the address
 * is given out
 */
export function requireInside(exclusions: readonly Exclusion[], ranges: readonly Range[]): void {
  if (exclusions.length === 0) return;
  const subnets = ranges.map(({ subnet }) => ({ first: firstOf(subnet), last: lastOf(subnet) }));
  for (const { run, refuse } of exclusions) {
    if (subnets.some((subnet) => overlap(subnet, run))) continue;
    throw refuse(`something in ${ranges.map(({ subnet }) => `"${formatCidr(subnet)}"`).join(", ")}`);
  }
}
