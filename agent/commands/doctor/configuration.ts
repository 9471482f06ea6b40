import type { AgentConfig } from "../../config/agent-config.ts";
import { usualOf } from "../../conflist/chained-plugins.ts";
import { conflistPath, conflistText, foreignBefore } from "../../conflist/conflist.ts";
import { chainedIn, readIfThere, versionsIn } from "../../conflist/listed-plugins.ts";
import { pluginFindings } from "./chained-plugins.ts";
import type { Finding } from "./finding.ts";

/** Whether the runtime finds our configuration, and takes it before any other plugin's. */
export async function conflistFindings(config: AgentConfig): Promise<readonly Finding[]> {
  const path = conflistPath(config);
  const [network] = config.networks;
  if (path === undefined || network === undefined) return [];
  const first = (await foreignBefore(config)).map(
    (what): Finding => ({
      severity: "error",
      code: "not-first",
      what,
      why: "Pods get their network from the other plugin, or none",
      todo: "remove the other file, or give ours an earlier name",
      evidence: "",
    }),
  );
  const is = readIfThere(path);
  if (is === undefined) return [...first, missing(path)];
  const found = [...first, ...pluginFindings(config, path, is)];
  // Subnets that a registry gives are known to the agent only, as are where it looks for plugins, and what these know.
  const plugins = config.cni.plugins ?? usualOf(chainedIn(is));
  const chained = { plugins, versions: config.cni.cniVersions ?? versionsIn(is) };
  if (network.subnets.length === 0 || is === conflistText(config, network, chained)) return found;
  return [
    ...found,
    {
      severity: "warning",
      code: "conflist-differs",
      what: `"${path}" is not what agent.yaml makes of it`,
      trusts: "agent.yaml",
      why: "The agent writes it at its start: somebody has changed one of the two since",
      todo: "have the agent write it again; start the agent again where agent.yaml is the newer one",
      repair: { t: "node" },
      evidence: is,
    },
  ];
}

const missing = (path: string): Finding => ({
  severity: "error",
  code: "conflist-missing",
  what: `"${path}" is missing or cannot be read`,
  why: "The runtime knows no network of ours, and stays unready or takes another plugin's",
  todo: "have the agent write it, as it does once it can serve",
  repair: { t: "node" },
  evidence: path,
});
