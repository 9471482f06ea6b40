import { parseRoute } from "../../shared/cni/result.ts";
import type { CniRoute } from "../../shared/cni/types.ts";
import { atLeast, type CniVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Ip } from "../../shared/ip.ts";
import { Fields, isObject } from "../../shared/json-fields.ts";
import { limits } from "../../shared/limits.ts";
import { paths } from "../../shared/paths.ts";
import { familyOf, formatRangeSet, parseRange, type RangeSet, rangeSetOf, requireDisjoint } from "./ranges.ts";
import { requestedIps } from "./requested.ts";

/** The `ipam` section together with what the runtime added to it, checked. */
export interface IpamConfig {
  readonly type: string;
  readonly dataDir: string;
  readonly rangeSets: readonly RangeSet[];
  readonly routes: readonly CniRoute[];
  /** Path of the file that the result's `dns` comes from. */
  readonly resolvConf?: string;
  /** Addresses that this container must get, without repetition. */
  readonly requested: readonly Ip[];
  readonly cooldownMs: number;
}

/** What of a request decides about addresses. */
export interface IpamRequest {
  readonly conf: Fields;
  /** Network name. */
  readonly network: string;
  readonly version: CniVersion;
  /** CNI_ARGS. */
  readonly args: string;
}

/**
 * Reads the configuration as ADD needs it: strictly, with every source of ranges and requested addresses.
 * @throws {CniError} code 7 naming the field, 4 for CNI_ARGS
 */
export function parseIpamConfig(request: IpamRequest): IpamConfig {
  const config = parseAnyRanges(request);
  if (config.rangeSets.length > 0) return config;
  throw new CniError(
    CniCode.invalidConfig,
    'Cannot read the network configuration: it names no addresses, wanted "ipam.ranges", "ipam.subnet" or "runtimeConfig.ipRanges"',
  );
}

/** As `parseIpamConfig`, but ranges may be missing: STATUS does not get those that the runtime brings with each ADD. */
export function parseAnyRanges(request: IpamRequest): IpamConfig {
  const { conf } = request;
  const ipam = conf.object("ipam");
  if (ipam === undefined) throw conf.wrong("ipam", undefined, "the section that says which addresses to give out");
  const requested = requestedIps(conf, request.args);
  const rangeSets = [...fromRuntime(conf), ...fromTopLevel(ipam), ...rangeSetsIn(ipam, "ranges")];
  requireOldShapeFits(rangeSets, request.version);
  requireDisjoint(rangeSets);
  const resolvConf = absolutePath(ipam, "resolvConf");
  return {
    type: ipam.string("type") ?? "",
    dataDir: dataDirOf(conf),
    rangeSets,
    routes: (ipam.objects("routes") ?? []).map(parseRoute),
    ...(resolvConf === undefined ? {} : { resolvConf }),
    requested,
    cooldownMs: ipam.integer("cooldownMs", 0, limits.longestCooldownMs) ?? limits.cooldownMs,
  };
}

/** What the runtime brings counts first: `capabilities: {ipRanges: true}`. */
function fromRuntime(conf: Fields): readonly RangeSet[] {
  const runtime = conf.object("runtimeConfig");
  return runtime === undefined ? [] : rangeSetsIn(runtime, "ipRanges");
}

/** The one range of the schema's first days; without `subnet` its other keys say nothing, as in host-local. */
function fromTopLevel(ipam: Fields): readonly RangeSet[] {
  return ipam.has("subnet") ? [rangeSetOf([parseRange(ipam)], ipam.path)] : [];
}

function rangeSetsIn(fields: Fields, key: string): readonly RangeSet[] {
  const sets = fields.array(key, (value, path) => {
    if (!Array.isArray(value)) throw fields.wrongAt(path, value, "an array of ranges");
    const ranges = value.map((entry: unknown, i) => {
      if (!isObject(entry)) throw fields.wrongAt(`${path}[${i}]`, entry, "an object");
      return parseRange(new Fields(entry, `${path}[${i}]`));
    });
    return rangeSetOf(ranges, path);
  });
  return sets ?? [];
}

/** Results before 0.3.0 have room for one address of each family. */
function requireOldShapeFits(sets: readonly RangeSet[], version: CniVersion): void {
  if (atLeast(version, "0.3.0")) return;
  for (const family of [4, 6]) {
    const same = sets.filter((set) => familyOf(set) === family);
    if (same.length < 2) continue;
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot read the network configuration: its range sets ${same.map(formatRangeSet).join(" and ")} would give two IPv${family} addresses, wanted one at most with "cniVersion" "${version}"`,
    );
  }
}

/**
 * Where the leases of this configuration lie. Lenient: DEL, GC and CHECK must work when the ranges no longer do.
 * @throws {CniError} code 7 where `ipam.dataDir` is no absolute path: guessing another place would leak the lease
 */
export function dataDirOf(conf: Fields): string {
  const ipam = conf.object("ipam");
  return (ipam === undefined ? undefined : absolutePath(ipam, "dataDir")) ?? paths.dataDir;
}

/** An empty text counts as absent. The plugin's working directory is the runtime's, so nothing may depend on it. */
function absolutePath(fields: Fields, key: string): string | undefined {
  const text = fields.string(key);
  if (text === undefined || text === "") return undefined;
  if (paths.isAbsolute(text) && !text.includes("\0")) return text;
  throw fields.wrong(key, text, "an absolute path");
}

/**
 * Who keeps the addresses: our allocator in this process (`own`), another IPAM plugin (`delegated`),
 * or the agent by its own configuration (`agent`: no `ipam`, or one without a type).
 */
export function ownsIpam(conf: Fields): "own" | "delegated" | "agent" {
  const type = conf.object("ipam")?.string("type") ?? "";
  if (type === "") return "agent";
  return type === "pipette-ipam" || type === "pipette" ? "own" : "delegated";
}
