import { resolve } from "node:path";
import { networkNameRule, wrongNetworkName } from "../../shared/cni/names.ts";
import { paths } from "../../shared/os/paths.ts";
import { isNear } from "../../shared/schema/near.ts";
import type { OptionSpec } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { orList } from "../../shared/terminal/parse-line.ts";
import { printable } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { Allocator } from "../allocator.ts";
import { requireRights } from "../check/check-store.ts";
import { dataDirOf } from "../config/ipam-config.ts";
import { databaseIn } from "../data-directory.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { type NetworkConf, readNetworkConf } from "./network-conf.ts";

/** What a command works on: which network's leases, and where they are stored. */
export interface Scope {
  /** Absolute. */
  readonly dataDir: string;
  /** From `--network` or the configuration; absent: every network. */
  readonly network?: string;
  readonly conf?: NetworkConf;
}

/** Names that a message lists, the likely ones first. */
const maxNames = 20;

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
 * The data directory of a command: from the option, the configuration, the environment, or the default.
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

/** The network of a command that needs one; reports on stderr where nothing names it. */
export function oneNetwork({ network }: Scope, action: string, io: TerminalIo): string | undefined {
  if (network === undefined)
    io.stderr(`Cannot ${action}: nothing says of which network, wanted --network NAME or --conf FILE\n`);
  return network;
}

/**
 * Reports a network from `--network` that was never used here, with those that were. A network that the configuration
 * names is known, also before its first ADD.
 * @returns the status to end with, or `undefined`
 */
export async function unknownNetwork(scope: Scope, action: string, io: TerminalIo): Promise<number | undefined> {
  const { network, conf, dataDir } = scope;
  if (network === undefined || conf?.network === network) return undefined;
  using snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  // A missing database is reported when the command opens it.
  if (snapshot === undefined) return undefined;
  const known = snapshot.networks();
  if (known.includes(network)) return undefined;
  const told = known.toSorted((a, b) => Number(isNear(network, b)) - Number(isNear(network, a))).slice(0, maxNames);
  const wanted = told.length === 0 ? "one that gave out addresses: none did yet" : quotedList(told);
  const is = `no network "${network}" was ever used in "${dataDir}"`;
  io.stderr(`${printable(`Cannot ${action}: ${is}, wanted ${wanted}`)}\n`);
  return exitStatus.notThere;
}

const quotedList = (names: readonly string[]): string => orList(names.map((name) => `"${name}"`));

/** `undefined`, with a message on stderr, where nothing was ever leased. */
export async function openSnapshot(
  dataDir: string,
  action: string,
  io: TerminalIo,
): Promise<StoreSnapshot | undefined> {
  const snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  if (snapshot === undefined) sayMissing(dataDir, action, io);
  return snapshot;
}

/** The same for commands that change leases. */
export async function openAllocator(dataDir: string, action: string, io: TerminalIo): Promise<Allocator | undefined> {
  const allocator = await Allocator.openExisting(dataDir);
  if (allocator === undefined) sayMissing(dataDir, action, io);
  return allocator;
}

/** For commands to which a configuration is enough. */
export const sayNothingGiven = (dataDir: string, io: TerminalIo): void =>
  io.stderr(`${printable(`"${dataDir}" holds no leases.db: nothing was given out there yet`)}\n`);

export function sayMissing(dataDir: string, action: string, io: TerminalIo): void {
  io.stderr(
    `Cannot ${action}: "${printable(dataDir)}" holds no leases.db, wanted the data directory of a node that gave out addresses\n`,
  );
}

/** What a completion can ask the database for; `holders` are addresses, pods and sandboxes together. */
export const nameKinds = ["networks", "addresses", "pods", "sandboxes", "holders"] as const;
export type NameKind = (typeof nameKinds)[number];

/** For an option or operand whose values a completion asks for. */
export const namesOf = (kind: NameKind): { readonly ask: NameKind } => ({ ask: kind });

/** Options that several commands share. */

export const dataDirOption = {
  value: "DIR",
  of: "directory",
  help: `where leases.db lies (default: what --conf says, or PIPETTE_DATA_DIR, or ${paths.dataDir})`,
} as const satisfies OptionSpec;

export const networkOption = {
  value: "NAME",
  of: namesOf("networks"),
  help: "only this network's",
  rule: { wrong: wrongNetworkName, wanted: networkNameRule },
} as const satisfies OptionSpec;

export const confOption = {
  value: "FILE",
  of: "file",
  help: 'a network configuration, .conf or .conflist ("-": standard input)',
} as const satisfies OptionSpec;

export const jsonOption = {
  help: "JSON for programs; conf/ipam-output.schema.json describes it",
} as const satisfies OptionSpec;

export const progressOption = {
  help: "says how far it has come on stderr, also where that is no terminal",
} as const satisfies OptionSpec;
