import { accessSync, constants } from "node:fs";
import { dirname, join } from "node:path";
import { atLeast, type CniVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { paths } from "../../shared/os/paths.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { runProgram } from "../platform/run-program.ts";

type Plugin = Readonly<Record<string, unknown>>;

/**
 * The plugins that run after ours by default if their executables exist: the first provides host ports, the second
 * bandwidth annotations. In the order that both require.
 */
const usualPlugins: readonly Plugin[] = [
  { type: "portmap", capabilities: { portMappings: true }, snat: true },
  { type: "bandwidth", capabilities: { bandwidth: true } },
];

/** Further directories, in which podman searches and Debian installs plugins. */
const otherDirectories: readonly string[] = isWindows
  ? []
  : ["/usr/local/libexec/cni", "/usr/libexec/cni", "/usr/local/lib/cni", "/usr/lib/cni"];

/** The plugins to run after ours. */
export interface Chain {
  readonly plugins: readonly Plugin[];
  /** Versions of the specification that runtimes may choose from. */
  readonly versions: readonly CniVersion[];
  /** Default plugins that are missing. */
  readonly lacking: readonly string[];
  /** The directory that was searched. */
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

/** An answer takes milliseconds; a plugin that hangs must not delay the node's network for long. */
const longestAnswerMs = 2_000;

/**
 * The versions of the specification that all of these plugins and ours support. The runtime uses one version for the
 * whole list: if 1.1.0 were offered, a plugin without it, such as Debian 12's portmap, would fail each STATUS, and with
 * containerd 2 the node would never become ready.
 * @param directory where their executables are; one that is not there, or says nothing, knows none
 */
async function knownToAll(types: readonly string[], directory: string): Promise<readonly CniVersion[]> {
  const known = await Promise.all(types.map((type) => versionsKnownTo(join(directory, type))));
  return supportedVersions.filter((version) => known.every((versions) => versions.has(version)));
}

async function versionsKnownTo(executable: string): Promise<ReadonlySet<unknown>> {
  const { stdout } = await runProgram(executable, [], {
    deadlineMs: longestAnswerMs,
    input: JSON.stringify({ cniVersion: "1.0.0" }),
    env: { CNI_COMMAND: "VERSION" },
  });
  try {
    const answer = parseJson(stdout);
    const versions = isObject(answer) ? answer["supportedVersions"] : undefined;
    return new Set(Array.isArray(versions) ? versions : []);
  } catch {
    return new Set(); // It could not be started, or its answer is no JSON.
  }
}

/** The default plugins of these types. */
export const usualOf = (types: readonly unknown[]): readonly Plugin[] =>
  usualPlugins.filter(({ type }) => types.includes(type));

/** The missing functions, in words that continue "without …"; `undefined` if none is missing. */
export function lackOf({ lacking, directory }: Chain): string | undefined {
  if (lacking.length === 0) return undefined;
  const what = lacking.map((type) => (type === "portmap" ? "host ports" : "bandwidth limits")).join(" and ");
  const names = lacking.map((type) => `"${type}"`).join(" and ");
  return `pods' ${what}, as "${directory}" has no ${names}`;
}

/** Where a plugin's executable is: beside ours, where every runtime that finds ours looks; elsewhere; or nowhere. */
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
 * The directory in which the runtime finds our plugin: that of this executable if it is installed there under both
 * names, else the default, as in a container.
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
