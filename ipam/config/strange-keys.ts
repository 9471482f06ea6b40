import { CniError } from "../../shared/errors.ts";
import { type Fields, isObject } from "../../shared/schema/json-fields.ts";
import { nearest } from "../../shared/schema/near.ts";

/** A key that nobody reads: host-local passes it over, and so does an ADD. */
export interface StrangeKey {
  /** Its whole path: `ipam.ranges[0][0].exlude`. */
  readonly path: string;
  /** What it may have been meant as. */
  readonly near?: string;
}

/** What the keys of a range can be. */
export const rangeKeys = ["subnet", "rangeStart", "rangeEnd", "gateway", "exclude"] as const;

/** What the keys of a route can be. */
export const routeKeys = ["dst", "gw", "mtu", "advmss", "priority", "table", "scope"] as const;

/** What the keys of the section can be; its `name` says nothing, as in host-local. */
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

/** More say nothing more. */
const mostKeys = 20;

/** Of a plugin's configuration: in its `ipam` section, whatever else is wrong with that. */
export function strangeKeys(conf: Fields): readonly StrangeKey[] {
  const ipam = conf.get("ipam");
  return isObject(ipam) ? strangeKeysIn(conf.at(ipam, conf.pathOf("ipam"))) : [];
}

/** The same of a section by itself, such as a settings file has it. */
export function strangeKeysIn(section: Fields): readonly StrangeKey[] {
  const inLists = [...inObjects(section, "ranges", rangeKeys), ...inObjects(section, "routes", routeKeys)];
  return [...strangersOf(section, sectionKeys), ...inLists].slice(0, mostKeys);
}

/** `"ipam.exlude" is an unknown key (did you mean "exclude"?) and passed over`. */
export const strangeKeyText = ({ path, near }: StrangeKey): string =>
  `"${path}" is an unknown key${near === undefined ? "" : ` (did you mean "${near}"?)`} and passed over`;

/** The failure of a call, with the keys that nobody reads among its details. */
export function withStrangeKeys(caught: unknown, conf: Fields): unknown {
  const strange = strangeKeys(conf).map(strangeKeyText);
  if (strange.length === 0) return caught;
  const { code, message, details } = CniError.from(caught);
  const told = [...(details === "" ? [] : [details]), ...strange].join("; ");
  return new CniError(code, message, { details: told, cause: caught });
}

/** Of the objects in an array, and in the arrays within it. */
function inObjects(section: Fields, key: string, known: readonly string[]): readonly StrangeKey[] {
  const within = (value: unknown, path: string): readonly StrangeKey[] => {
    if (Array.isArray(value)) return value.flatMap((entry: unknown, i) => within(entry, `${path}[${i}]`));
    return isObject(value) ? strangersOf(section.at(value, path), known) : [];
  };
  const value = section.get(key);
  return Array.isArray(value) ? within(value, section.pathOf(key)) : [];
}

/** Keys match in any case, as everywhere. */
function strangersOf(fields: Fields, known: readonly string[]): readonly StrangeKey[] {
  const read = new Set(known.map((key) => key.toLowerCase()));
  return Object.keys(fields.raw)
    .filter((key) => !read.has(key.toLowerCase()))
    .map((key) => {
      const near = nearest(key, known);
      return { path: fields.pathOf(key), ...(near === undefined ? {} : { near }) };
    });
}
