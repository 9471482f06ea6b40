import { CniError } from "../../shared/errors.ts";
import { paths } from "../../shared/os/paths.ts";
import { Fields, isObject } from "../../shared/schema/json-fields.ts";
import { nearest } from "../../shared/schema/near.ts";
import { readTrusted } from "./settings-file.ts";

/** A key that nothing reads; an ADD ignores it, as host-local does. */
export interface UnknownKey {
  /** Its whole path: `ipam.ranges[0][0].exlude`. */
  readonly path: string;
  /** The known key that it resembles. */
  readonly near?: string;
}

/** The known keys of a range. */
export const rangeKeys = ["subnet", "rangeStart", "rangeEnd", "gateway", "exclude"] as const;

/** The known keys of a route. */
export const routeKeys = ["dst", "gw", "mtu", "advmss", "priority", "table", "scope"] as const;

/** The known keys of the section; `name` is known and ignored, as in host-local. */
export const sectionKeys = [
  "type",
  "name",
  ...rangeKeys,
  "ranges",
  "routes",
  "dataDir",
  "resolvConf",
  "cooldownMs",
  "sticky",
] as const;

/** Unknown keys that are reported; more would not help. */
const maxKeys = 20;

/** The unknown keys in the `ipam` section of a plugin's configuration, also where the section has other mistakes. */
export function unknownKeys(conf: Fields): readonly UnknownKey[] {
  const ipam = conf.get("ipam");
  return isObject(ipam) ? unknownKeysIn(conf.at(ipam, conf.pathOf("ipam"))) : [];
}

/** The same for a section by itself, as in a settings file. */
export function unknownKeysIn(section: Fields): readonly UnknownKey[] {
  const inLists = [...inObjects(section, "ranges", rangeKeys), ...inObjects(section, "routes", routeKeys)];
  return [...strangersOf(section, sectionKeys), ...inLists].slice(0, maxKeys);
}

/** `"ipam.exlude" is an unknown key (did you mean "exclude"?) and passed over`. */
export const unknownKeyText = ({ path, near }: UnknownKey): string =>
  `"${path}" is an unknown key${near === undefined ? "" : ` (did you mean "${near}"?)`} and passed over`;

/** Adds the unknown keys to the details of a call's error. */
export function withUnknownKeys(caught: unknown, conf: Fields): unknown {
  const strange = unknownKeys(conf).map(unknownKeyText);
  if (strange.length === 0) return caught;
  const { code, message, details } = CniError.from(caught);
  const told = [...(details === "" ? [] : [details]), ...strange].join("; ");
  return new CniError(code, message, { details: told, cause: caught });
}

/** Unknown keys of the objects in an array, and in arrays within it. */
function inObjects(section: Fields, key: string, known: readonly string[]): readonly UnknownKey[] {
  const within = (value: unknown, path: string): readonly UnknownKey[] => {
    if (Array.isArray(value)) return value.flatMap((entry: unknown, i) => within(entry, `${path}[${i}]`));
    return isObject(value) ? strangersOf(section.at(value, path), known) : [];
  };
  const value = section.get(key);
  return Array.isArray(value) ? within(value, section.pathOf(key)) : [];
}

/** Keys match in upper or lower case, as everywhere. */
function strangersOf(fields: Fields, known: readonly string[]): readonly UnknownKey[] {
  const read = new Set(known.map((key) => key.toLowerCase()));
  return Object.keys(fields.raw)
    .filter((key) => !read.has(key.toLowerCase()))
    .map((key) => {
      const near = nearest(key, known);
      return { path: fields.pathOf(key), ...(near === undefined ? {} : { near }) };
    });
}

/** The unknown keys of a network's settings file, and its path; for checks, which a plugin does not load. */
export async function unknownKeysOfSettings(
  dataDir: string,
  network: string,
): Promise<{ readonly path: string; readonly keys: readonly UnknownKey[] }> {
  const path = `${dataDir}${paths.directorySeparator}${network}.json`;
  const bytes = await readTrusted(path);
  if (bytes === undefined) return { path, keys: [] };
  return { path, keys: unknownKeysIn(Fields.parse(new TextDecoder().decode(bytes), `settings file "${path}"`)) };
}
