import { resolve } from "node:path";
import { paths } from "../../shared/os/paths.ts";
import { isNear } from "../../shared/schema/near.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { orList } from "../../shared/terminal/parse-line.ts";
import { printable } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { requireRights } from "../check/require-rights.ts";
import { dataDirOf } from "../config/ipam-config.ts";
import { databaseIn } from "../data-directory.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { type NetworkConf, readNetworkConf } from "./network-conf.ts";

/** What a command line is about: whose leases, and where they lie. */
export interface Scope {
  /** Absolute. */
  readonly dataDir: string;
  /** As `--network` or the configuration names it; absent: every network. */
  readonly network?: string;
  readonly conf?: NetworkConf;
}

/** Names that a message lists, the likely ones first. */
const mostNames = 20;

interface ScopeOptions {
  readonly conf?: string | undefined;
  readonly network?: string | undefined;
  readonly "data-dir"?: string | undefined;
}

/** @throws {CniError} code 5, 6 or 7 where `--conf` cannot be read */
export async function scopeOf(options: ScopeOptions, io: TerminalIo): Promise<Scope> {
  const conf = options.conf === undefined ? undefined : await readNetworkConf(options.conf, io);
  const network = options.network ?? conf?.network;
  return {
    dataDir: dataDirFor(options["data-dir"], conf, io),
    ...(network === undefined ? {} : { network }),
    ...(conf === undefined ? {} : { conf }),
  };
}

/**
 * Where the leases of a command line lie: as typed, as the configuration says, as the environment says, or as ever.
 * @throws {CniError} code 101 where this user may not look there
 */
export function dataDirFor(typed: string | undefined, conf: NetworkConf | undefined, io: TerminalIo): string {
  const dataDir = placeFor(typed, conf, io);
  requireRights(databaseIn(dataDir));
  return dataDir;
}

function placeFor(typed: string | undefined, conf: NetworkConf | undefined, { env }: TerminalIo): string {
  const configured = conf?.conf.object("ipam")?.string("dataDir") ?? "";
  if (typed !== undefined) return resolve(typed);
  if (conf !== undefined && configured !== "") return dataDirOf(conf.conf);
  return resolve(env["PIPETTE_DATA_DIR"] || paths.dataDir);
}

/** The network of a command that needs one; said on stderr where nothing names it. */
export function oneNetwork({ network }: Scope, action: string, io: TerminalIo): string | undefined {
  if (network === undefined)
    io.stderr(`Cannot ${action}: nothing says of which network, wanted --network NAME or --conf FILE\n`);
  return network;
}

/**
 * Whether the network that `--network` names was ever used here; else says so, with those that were. What a
 * configuration names is there, before its first ADD too.
 * @returns the status to end with, or `undefined`
 */
export async function unknownNetwork(scope: Scope, action: string, io: TerminalIo): Promise<number | undefined> {
  const { network, conf, dataDir } = scope;
  if (network === undefined || conf?.network === network) return undefined;
  using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  // That there is no database is told by whoever opens it to work.
  if (snapshot === undefined) return undefined;
  const known = snapshot.networks();
  if (known.includes(network)) return undefined;
  const told = known.toSorted((a, b) => Number(isNear(network, b)) - Number(isNear(network, a))).slice(0, mostNames);
  const wanted = told.length === 0 ? "one that gave out addresses: none did yet" : quotedList(told);
  const is = `no network "${network}" was ever used in "${dataDir}"`;
  io.stderr(`${printable(`Cannot ${action}: ${is}, wanted ${wanted}`)}\n`);
  return exitStatus.notThere;
}

const quotedList = (names: readonly string[]): string => orList(names.map((name) => `"${name}"`));
