import { maxStdinBytes } from "../../shared/cni/dispatch.ts";
import { type CniVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { whereIs } from "./chained-plugins.ts";
import { conflistPath } from "./conflist.ts";

/** Types of the plugins in a network configuration list, except ours; none if it cannot be read. */
export function chainedIn(conflist: string): readonly string[] {
  const plugins = keyOf(conflist, "plugins");
  if (!Array.isArray(plugins)) return [];
  return plugins
    .flatMap((plugin) => (isObject(plugin) && typeof plugin["type"] === "string" ? [plugin["type"]] : []))
    .filter((type) => type !== "pipette");
}

/** The versions that it offers to runtimes; none where it cannot be read. */
export function versionsIn(conflist: string): readonly CniVersion[] {
  const versions = keyOf(conflist, "cniVersions");
  return supportedVersions.filter((version) => Array.isArray(versions) && versions.includes(version));
}

function keyOf(conflist: string, key: string): unknown {
  try {
    const list = parseJson(conflist);
    return isObject(list) ? list[key] : undefined;
  } catch {
    return undefined;
  }
}

const noNetwork = "Cannot give a new pod its network: the plugin ";

/** Whether it is one of `missingPlugins`, which the doctor finds itself with more detail. */
export const isMissingPlugin = (problem: string): boolean => problem.startsWith(noNetwork);

/** A sentence for each plugin of the runtime's list that is missing on this node: without it every ADD fails. */
export function missingPlugins(config: AgentConfig): readonly string[] {
  const path = conflistPath(config);
  const list = path === undefined ? undefined : readIfThere(path);
  if (list === undefined) return [];
  return chainedIn(list)
    .filter((type) => whereIs(type) === undefined)
    .map(
      (type) =>
        `${noNetwork}"${type}" of "${path}" is not on this node, wanted it beside "pipette", or out of "cni.plugins" in agent.yaml`,
    );
}

/** The runtime's list as it is; `undefined` where it cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readSmallFile(path, maxStdinBytes);
  } catch {
    return undefined;
  }
}
