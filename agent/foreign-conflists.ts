import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { AgentConfig } from "./config/agent-config.ts";
import { conflistPath } from "./conflist.ts";

/** What runtimes load from their directory. */
const endings = [".conf", ".conflist", ".json"];

/** Sentences about other plugins' files that a runtime would take before ours: it takes the first by name. */
export async function foreignBefore(config: AgentConfig): Promise<readonly string[]> {
  const path = conflistPath(config);
  if (path === undefined) return [];
  const names = await readdir(dirname(path)).catch(() => []);
  const ours = basename(path);
  return names
    .filter((name) => name < ours && endings.some((ending) => name.endsWith(ending)))
    .sort()
    .map(
      (name) =>
        `"${join(dirname(path), name)}" comes before "${ours}", so a runtime takes that one: remove it, or give ours an earlier name (agent.yaml, cni.fileName)`,
    );
}
