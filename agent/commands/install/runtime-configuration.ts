import { lstat, readFile } from "node:fs/promises";
import { parseJson } from "../../../shared/schema/json.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { chainOf, lackOf } from "../../conflist/chained-plugins.ts";
import { conflistPath } from "../../conflist/conflist.ts";
import { failed, isMissing, removeFile } from "./files.ts";
import type { Step } from "./plan.ts";

/**
 * The step for the runtime's file in an installation: the running agent writes it, once it serves, so that the runtime
 * turns ready when the node is.
 * @param binDir where the runtime finds plugins
 */
export async function leftToAgent(config: AgentConfig, binDir: string): Promise<readonly Step[]> {
  const path = conflistPath(config);
  if (path === undefined) return [];
  const chain = await chainOf(config, binDir);
  const types = chain.plugins.map(({ type }) => `"${type}"`).join(" and ");
  const lack = lackOf(chain);
  const detail = [
    "written by the agent once it serves",
    ...(types === "" ? [] : [`with ${types}`]),
    ...(lack === undefined ? [] : [`without ${lack}`]),
  ];
  return [{ action: "none", target: path, detail: detail.join(", ") }];
}

/**
 * Plans the removal of the runtime's file, the first step of an uninstallation, so that no new pod is assigned a
 * network that is going.
 * @returns no step for a file that is another plugin's, but a warning
 */
export async function planUnconfigure(path: string): Promise<{ readonly steps: Step[]; readonly warnings: string[] }> {
  const stat = await lstat(path).catch((caught) => {
    if (isMissing(caught)) return undefined;
    throw failed("look at", path, caught);
  });
  if (stat === undefined) return { steps: [{ action: "none", target: path, detail: "is not there" }], warnings: [] };
  if (!stat.isFile() || !(await isOurs(path)))
    return { steps: [], warnings: [`"${path}" is left: its first plugin is not "pipette"`] };
  const run = async (): Promise<undefined> => {
    await removeFile(path).catch((caught) => {
      throw failed("remove", path, caught);
    });
  };
  return { steps: [{ action: "remove", target: path, detail: "the runtime's configuration", run }], warnings: [] };
}

async function isOurs(path: string): Promise<boolean> {
  try {
    const list = parseJson(await readFile(path, "utf8"));
    const plugins = isObject(list) ? list["plugins"] : undefined;
    const first: unknown = Array.isArray(plugins) ? plugins[0] : list;
    return isObject(first) && first["type"] === "pipette";
  } catch {
    return false;
  }
}
