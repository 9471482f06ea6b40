import { accessSync, constants } from "node:fs";
import { dirname, join } from "node:path";
import { atLeast, type CniVersion } from "../../shared/cni/versions.ts";
import { paths } from "../../shared/os/paths.ts";
import { isWindows } from "../../shared/os/platform.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { knownToAll } from "./plugin-versions.ts";

type Plugin = Readonly<Record<string, unknown>>;

/**
 * What runs after us where nobody says otherwise and the executables are there: without the first a pod's host ports are
 * dead, without the second its bandwidth annotations. In the order that both ask for.
 */
const usualPlugins: readonly Plugin[] = [
  { type: "portmap", capabilities: { portMappings: true }, snat: true },
  { type: "bandwidth", capabilities: { bandwidth: true } },
];

/** Where podman looks besides, and Debian has its plugins. */
const otherDirectories: readonly string[] = isWindows
  ? []
  : ["/usr/local/libexec/cni", "/usr/libexec/cni", "/usr/local/lib/cni", "/usr/lib/cni"];

/** The plugins to run after ours. */
export interface Chain {
  readonly plugins: readonly Plugin[];
  /** Of the specification, which runtimes may choose from. */
  readonly versions: readonly CniVersion[];
  /** Types of the usual ones that are not there. */
  readonly lacking: readonly string[];
  /** Where they were looked for. */
  readonly directory: string;
}

/** @param directory where the runtime finds our plugin */
export async function chainOf(
  config: Pick<AgentConfig, "cni" | "dataPath">,
  directory = pluginDirectory(),
): Promise<Chain> {
  const { plugins } = config.cni;
  // HNS maps a pod's ports itself.
  if (plugins !== undefined || config.dataPath === "hns") return chained(config, plugins ?? [], directory);
  const isThere = ({ type }: Plugin): boolean => isPlugin(join(directory, String(type)));
  return {
    ...(await chained(config, usualPlugins.filter(isThere), directory)),
    lacking: usualPlugins.filter((plugin) => !isThere(plugin)).map(({ type }) => String(type)),
  };
}

async function chained(
  { cni }: Pick<AgentConfig, "cni">,
  plugins: readonly Plugin[],
  directory: string,
): Promise<Chain> {
  const { cniVersion: least, cniVersions } = cni;
  const types = plugins.map(({ type }) => `${type}${paths.executableSuffix}`);
  const known = async (): Promise<readonly CniVersion[]> =>
    (await knownToAll(types, directory)).filter((version) => version !== least && atLeast(version, least));
  return { plugins, versions: cniVersions ?? [least, ...(await known())], lacking: [], directory };
}

/** Those of the usual ones that have these types. */
export const usualOf = (types: readonly unknown[]): readonly Plugin[] =>
  usualPlugins.filter(({ type }) => types.includes(type));

/** What pods go without, in words that continue "without …"; `undefined` where they go without nothing. */
export function lackOf({ lacking, directory }: Chain): string | undefined {
  if (lacking.length === 0) return undefined;
  const what = lacking.map((type) => (type === "portmap" ? "host ports" : "bandwidth limits")).join(" and ");
  const names = lacking.map((type) => `"${type}"`).join(" and ");
  return `pods' ${what}, as "${directory}" has no ${names}`;
}

/** Where a plugin's executable is: beside ours, where every runtime looks that finds us; elsewhere; nowhere. */
export function whereIs(
  type: string,
  ours: readonly string[] = [pluginDirectory(), paths.cniBinDir],
): string | undefined {
  const name = `${type}${paths.executableSuffix}`;
  return [...ours, ...otherDirectories].map((directory) => join(directory, name)).find(isPlugin);
}

/** Whether a runtime that finds our own plugin finds this executable too. */
export const isBesideOurs = (path: string): boolean => isInstallation(dirname(path));

/**
 * Where the runtime finds our plugin: where this executable lies if it has been installed there under both names, else
 * the usual place, as in a container, whose own root is no such directory.
 */
export function pluginDirectory(): string {
  const own = dirname(process.execPath);
  return own !== dirname(own) && isInstallation(own) ? own : paths.cniBinDir;
}

const isInstallation = (directory: string): boolean =>
  ["pipette", "pipette-ipam"].every((name) => isPlugin(join(directory, `${name}${paths.executableSuffix}`)));

function isPlugin(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
