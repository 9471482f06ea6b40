import { parseRoute } from "../../shared/cni/result.ts";
import type { CniRoute } from "../../shared/cni/types.ts";
import { limits } from "../../shared/limits.ts";
import { paths } from "../../shared/os/paths.ts";
import { type Fields, isObject } from "../../shared/schema/json-fields.ts";
import { type Exclusion, parseExclude, requireInside } from "./exclude.ts";
import { parseRange, type Range, type RangeSet, rangeSetOf } from "./ranges.ts";

/** Ranges of one list. Bounded because every ADD compares each with all others. */
const maxRanges = 1024;

/** The content of an `ipam` section, or of a settings file, which has the same keys. */
export interface IpamSection {
  /** The single range of the oldest schema: `subnet`, `rangeStart`, `rangeEnd`, `gateway`. */
  readonly single?: RangeSet;
  readonly ranges?: readonly RangeSet[];
  readonly exclude?: readonly Exclusion[];
  readonly routes?: readonly CniRoute[];
  readonly resolvConf?: string;
  readonly cooldownMs?: number;
  readonly sticky?: boolean;
}

/** @throws {CniError} code 7 naming the field */
export function parseSection(fields: Fields): IpamSection {
  // Without `subnet` the other keys of the range are ignored, as in host-local.
  const single = fields.has("subnet") ? rangeSetOf([parseRange(fields)], fields, fields.path) : undefined;
  const ranges = parseRangeSets(fields, "ranges");
  const exclude = parseExclude(fields);
  const routes = fields.objects("routes")?.map(parseRoute);
  const resolvConf = absolutePath(fields, "resolvConf");
  const cooldownMs = fields.integer("cooldownMs", 0, limits.longestCooldownMs);
  const sticky = fields.boolean("sticky");
  return {
    ...(single === undefined ? {} : { single }),
    ...(ranges === undefined ? {} : { ranges }),
    ...(exclude === undefined ? {} : { exclude }),
    ...(routes === undefined ? {} : { routes }),
    ...(resolvConf === undefined ? {} : { resolvConf }),
    ...(cooldownMs === undefined ? {} : { cooldownMs }),
    ...(sticky === undefined ? {} : { sticky }),
  };
}

/** An array of range sets, each an array of ranges: `ranges`, or the runtime's `ipRanges`. */
export function parseRangeSets(fields: Fields, key: string): readonly RangeSet[] | undefined {
  requireFew(fields, key);
  return fields.array(key, (value, path) => {
    if (!Array.isArray(value)) throw fields.wrongAt(path, value, "an array of ranges");
    const ranges = value.map((entry: unknown, i): Range => {
      if (!isObject(entry)) throw fields.wrongAt(`${path}[${i}]`, entry, "an object");
      return parseListedRange(fields.at(entry, `${path}[${i}]`));
    });
    return rangeSetOf(ranges, fields, path);
  });
}

/** Counted before they are read, because reading compares them with each other. */
function requireFew(fields: Fields, key: string): void {
  const sets = fields.get(key);
  if (!Array.isArray(sets)) return;
  const count = sets.reduce((sum: number, set: unknown) => sum + (Array.isArray(set) ? set.length : 1), 0);
  if (count > maxRanges) throw fields.refused(fields.pathOf(key), `${count} ranges long`, `${maxRanges} at most`);
}

/** Only a range in a list has an `exclude` of its own; beside the single range the key belongs to the section. */
function parseListedRange(fields: Fields): Range {
  const range = parseRange(fields);
  const exclude = parseExclude(fields) ?? [];
  requireInside(exclude, [range]);
  return { ...range, exclude: exclude.map(({ run }) => run) };
}

/**
 * An empty text counts as absent. Relative paths are refused, since they would depend on the runtime's working
 * directory.
 */
export function absolutePath(fields: Fields, key: string): string | undefined {
  const text = fields.string(key);
  if (text === undefined || text === "") return undefined;
  if (paths.isLocal(text)) return text;
  throw fields.wrong(key, text, paths.localRule);
}
