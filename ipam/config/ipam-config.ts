import type { CniRoute } from "../../shared/cni/types.ts";
import { atLeast, type CniVersion } from "../../shared/cni/versions.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { limits } from "../../shared/limits.ts";
import type { Ip } from "../../shared/net/ip.ts";
import { paths } from "../../shared/os/paths.ts";
import type { Fields } from "../../shared/schema/json-fields.ts";
import { type Exclusion, requireInside } from "./exclude.ts";
import { type Intervals, intervalsOf } from "./intervals.ts";
import { familyOf, formatRangeSet, type RangeSet, requireDisjoint } from "./ranges.ts";
import { requestedIps } from "./requested.ts";
import { absolutePath, type IpamSection, parseRangeSets, parseSection } from "./section.ts";

/** The `ipam` section together with what the runtime added to it, checked. */
export interface IpamConfig {
  readonly type: string;
  readonly dataDir: string;
  readonly rangeSets: readonly RangeSet[];
  /** Of all ranges: the gateway of one may lie in the window of another. */
  readonly gateways: Intervals;
  /** What `exclude` names, in the section and in each range. */
  readonly excluded: Intervals;
  /** Addresses found on interfaces at this moment, with a lease or without; absent: none are known. */
  readonly withheld?: Intervals;
  /** Gateways, excluded and withheld together: what no pod gets. */
  readonly reserved: Intervals;
  readonly routes: readonly CniRoute[];
  /** Path of the file that the result's `dns` comes from. */
  readonly resolvConf?: string;
  /** Addresses that this container must get, without repetition. */
  readonly requested: readonly Ip[];
  readonly cooldownMs: number;
  /** A pod of the same namespace and name gets its last addresses back while they are free. */
  readonly sticky: boolean;
}

/** The parts of a request that decide about addresses. */
export interface IpamRequest {
  readonly conf: Fields;
  /** Network name. */
  readonly network: string;
  readonly version: CniVersion;
  /** CNI_ARGS. */
  readonly args: string;
  /** What `readSettingsFile` answered; the configuration's own keys take precedence. */
  readonly settings?: IpamSection;
}

/**
 * Reads the configuration as ADD needs it: strictly, with every source of ranges and requested addresses.
 * @throws {CniError} code 7 naming the field, 4 for CNI_ARGS
 */
export function parseIpamConfig(request: IpamRequest): IpamConfig {
  const [config, exclude] = read(request);
  if (config.rangeSets.length > 0) {
    requireInside(exclude, config.rangeSets.flat());
    return config;
  }
  throw new CniError(
    CniCode.invalidConfig,
    'Cannot read the network configuration: it names no addresses, wanted "ipam.ranges", "ipam.subnet" or "runtimeConfig.ipRanges"',
  );
}

/**
 * As `parseIpamConfig`, but ranges may be missing, and exclusions may lie outside of them: STATUS does not get the
 * ranges that the runtime passes with each ADD.
 */
export const parseAnyRanges = (request: IpamRequest): IpamConfig => read(request)[0];

function read({ conf, version, args, settings }: IpamRequest): readonly [IpamConfig, readonly Exclusion[]] {
  const [config, exclude] = settings === undefined ? conf.derive(readRanges) : readRanges(conf, settings);
  requireOldShapeFits(config.rangeSets, version);
  const requested = requestedIps(conf, args);
  return [requested.length === 0 ? config : { ...config, requested }, exclude];
}

/** What is the same for every pod that brings this configuration. */
function readRanges(conf: Fields, settings: IpamSection = {}): readonly [IpamConfig, readonly Exclusion[]] {
  const ipam = conf.object("ipam");
  if (ipam === undefined) throw conf.wrong("ipam", undefined, "the section that says which addresses to give out");
  const fromRuntime = conf.object("runtimeConfig");
  const brought = fromRuntime === undefined ? [] : (parseRangeSets(fromRuntime, "ipRanges") ?? []);
  const section: IpamSection = { ...settings, ...parseSection(ipam) };
  const { single, ranges = [], exclude = [], routes = [], resolvConf, cooldownMs, sticky = false } = section;
  const rangeSets = [...brought, ...(single === undefined ? [] : [single]), ...ranges];
  requireDisjoint(rangeSets);
  const config = {
    type: ipam.string("type") ?? "",
    dataDir: dataDirOf(conf),
    rangeSets,
    ...reservations(rangeSets, exclude),
    routes,
    ...(resolvConf === undefined ? {} : { resolvConf }),
    requested: [],
    cooldownMs: cooldownMs ?? limits.cooldownMs,
    sticky,
  };
  return [config, exclude];
}

function reservations(
  sets: readonly RangeSet[],
  exclude: readonly Exclusion[],
): Pick<IpamConfig, "gateways" | "excluded" | "reserved"> {
  const gateways = intervalsOf(sets.flat().map(({ gateway }) => ({ first: gateway, last: gateway })));
  const excluded = intervalsOf([...exclude.map(({ run }) => run), ...sets.flat().flatMap((range) => range.exclude)]);
  // Most configurations exclude nothing, and then there is nothing to join.
  return { gateways, excluded, reserved: excluded.length === 0 ? gateways : intervalsOf([...gateways, ...excluded]) };
}

/** A result before version 0.3.0 has room for one address of each family. */
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
 * @throws {CniError} code 7 where `ipam.dataDir` is no absolute path: with a default in its place the lease would be
 * leaked
 */
export function dataDirOf(conf: Fields): string {
  const ipam = conf.object("ipam");
  return (ipam === undefined ? undefined : absolutePath(ipam, "dataDir")) ?? paths.dataDir;
}
