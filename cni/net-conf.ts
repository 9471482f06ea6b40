import { type IpamKind, ipamKind } from "../shared/cni/ipam-kind.ts";
import { pluginTypeRule, wrongPluginType } from "../shared/cni/names.ts";
import { parseDns } from "../shared/cni/result.ts";
import { CniError } from "../shared/errors.ts";
import { limits } from "../shared/limits.ts";
import { type LogLevel, logLevels } from "../shared/log.ts";
import { interfaceMac } from "../shared/net/mac.ts";
import { paths } from "../shared/os/paths.ts";
import type { Fields } from "../shared/schema/json-fields.ts";

export type IpamChoice =
  | { readonly kind: Exclude<IpamKind, "delegated"> }
  | { readonly kind: "delegated"; readonly type: string };

/** The keys of the network configuration that the plugin itself reads; the allocator and the agent read the others. */
export interface NetConf {
  /** Where the agent listens. */
  readonly socket: string;
  readonly addTimeoutMs: number;
  readonly delTimeoutMs: number;
  readonly ipam: IpamChoice;
  /** The agent's `dataDir`, where a DEL is recorded when the agent does not answer. */
  readonly dataDir: string;
}

/**
 * Checks every key, also those that only the agent uses, so that a mistake is reported before anything is changed.
 * @throws {CniError} code 7, naming the field, its value and what is wanted
 */
export function parseNetConf(conf: Fields): NetConf {
  requireHarmless(conf);
  return read(conf, (field, otherwise) => field() ?? otherwise);
}

/**
 * Takes the default for every field that is wrong: DEL and GC must always be able to finish.
 * @param complain is called with each field that is wrong
 */
export function parseNetConfLeniently(conf: Fields, complain: (problem: string) => void): NetConf {
  return read(conf, (field, otherwise) => {
    try {
      return field() ?? otherwise;
    } catch (caught) {
      complain(CniError.from(caught).message);
      return otherwise;
    }
  });
}

type Reader = <T>(field: () => T | undefined, otherwise: T) => T;

function read(conf: Fields, reader: Reader): NetConf {
  const timeout = (key: string): number | undefined => conf.integer(key, 1, limits.longestTimeoutMs);
  return {
    socket: reader(() => socketPath(conf), paths.agentSocket as string),
    addTimeoutMs: reader(() => timeout("addTimeoutMs"), limits.addTimeoutMs as number),
    delTimeoutMs: reader(() => timeout("delTimeoutMs"), limits.delTimeoutMs as number),
    ipam: reader((): IpamChoice => ipamChoice(conf), { kind: "own" }),
    dataDir: reader(() => localPath(conf, "dataDir"), paths.dataDir as string),
  };
}

function ipamChoice(conf: Fields): IpamChoice {
  const kind = ipamKind(conf);
  if (kind !== "delegated") return { kind };
  const ipam = conf.object("ipam");
  const type = ipam?.string("type") ?? "";
  if (ipam !== undefined && wrongPluginType(type) !== undefined) throw ipam.wrong("type", type, pluginTypeRule);
  return { kind, type };
}

function requireHarmless(conf: Fields): void {
  const type = conf.string("type");
  if (type !== undefined && wrongPluginType(type) !== undefined) throw conf.wrong("type", type, pluginTypeRule);
  // Between plugin and agent this key carries the addresses, so it cannot come from outside.
  if (conf.has("ipamResult")) throw conf.wrong("ipamResult", conf.get("ipamResult"), "no such key");
  conf.integer("mtu", limits.smallestMtu, limits.largestMtu);
  parseDns(conf.object("dns"));
  logFileOf(conf);
  logLevelOf(conf);
  const runtime = conf.object("runtimeConfig");
  if (runtime === undefined) return;
  parseDns(runtime.object("dns"));
  const mac = runtime.string("mac");
  if (mac !== undefined && mac !== "" && interfaceMac(mac) === undefined)
    throw runtime.wrong("mac", mac, 'a hardware address, such as "0a:58:0a:f4:01:02"');
}

/**
 * Who may write a network configuration chooses a file to which root appends. Only names that end in `.log` are taken,
 * because no program acts on such a file as on `/etc/ld.so.preload` or `/etc/cron.d/x`.
 */
export function logFileOf(conf: Fields): string | undefined {
  const path = localPath(conf, "logFile");
  if (path === undefined || path === "" || path.endsWith(logSuffix)) return path;
  throw conf.wrong("logFile", path, `the absolute path of a file whose name ends in "${logSuffix}"`);
}

const logSuffix = ".log";

export function logLevelOf(conf: Fields): LogLevel | undefined {
  const text = conf.string("logLevel");
  if (text === undefined) return undefined;
  const level = logLevels.find((known) => known === text.toLowerCase());
  if (level === undefined) throw conf.wrong("logLevel", text, `one of ${logLevels.join(", ")}`);
  return level;
}

/** A relative path would depend on the runtime's working directory. */
function localPath(conf: Fields, key: string): string | undefined {
  const text = conf.string(key);
  if (text === undefined || paths.isLocal(text)) return text;
  throw conf.wrong(key, text, paths.localRule);
}

/** On Windows the name of a pipe; that it is a pipe of this machine is checked before it is opened. */
function socketPath(conf: Fields): string | undefined {
  const text = conf.string("socket");
  if (text === undefined || (paths.isAbsolute(text) && !text.includes("\0"))) return text;
  throw conf.wrong("socket", text, "an absolute path");
}
