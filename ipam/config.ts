import type { CniRoute } from "../shared/cni/types.ts";
import type { CniVersion } from "../shared/cni/versions.ts";
import type { Cidr, Ip } from "../shared/ip.ts";
import type { Fields } from "../shared/json-fields.ts";

/** One window of addresses to give out, both ends inclusive. */
export interface Range {
  readonly subnet: Cidr;
  readonly start: Ip;
  readonly end: Ip;
  /** Never given out, whether it lies inside the window or not. */
  readonly gateway: Ip;
}

/** One address is taken out of every set: windows of one family that do not overlap. */
export type RangeSet = readonly [Range, ...Range[]];

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
export function parseIpamConfig(_request: IpamRequest): IpamConfig {
  throw new Error("Broken invariant: the configuration's parser is not wired up yet");
}

/**
 * Where the leases of this configuration lie. Lenient: DEL, GC and CHECK must work when the ranges no longer do.
 * @throws {CniError} code 7 where `ipam.dataDir` is no absolute path: guessing another place would leak the lease
 */
export function dataDirOf(_conf: Fields): string {
  throw new Error("Broken invariant: the configuration's parser is not wired up yet");
}

/**
 * Who keeps the addresses: our allocator in this process (`own`), another IPAM plugin (`delegated`),
 * or the agent by its own configuration (`agent`: no `ipam`, or one without a type).
 */
export function ownsIpam(_conf: Fields): "own" | "delegated" | "agent" {
  throw new Error("Broken invariant: the configuration's parser is not wired up yet");
}
