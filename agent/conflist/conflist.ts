import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { AgentConfig, NetworkConfig } from "../config/agent-config.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { Chain } from "./chained-plugins.ts";

/**
 * The network configuration list of `network` (specification 1.1.0, section 1). Newer runtimes choose from
 * `cniVersions`, older ones read `cniVersion` alone. The runtime only passes declared capabilities.
 * @param chain what runs after us, and the versions that all of it knows
 */
export function conflistText(
  config: AgentConfig,
  network: NetworkConfig,
  { plugins, versions }: Pick<Chain, "plugins" | "versions">,
): string {
  const { cniVersion, disableGC } = config.cni;
  const ours = {
    type: "pipette",
    socket: config.socket,
    dataDir: config.dataDir,
    ipam: ipamSection(config, network),
    capabilities: capabilitiesOf(config),
  };
  const list = {
    cniVersion,
    ...(versions.length === 0 ? {} : { cniVersions: versions }),
    name: network.name,
    ...(disableGC ? { disableGC } : {}),
    plugins: [ours, ...plugins],
  };
  return `${JSON.stringify(list, null, 2)}\n`;
}

/**
 * HNS maps a pod's ports itself; elsewhere a plugin later in the list does, and only one of them may declare the
 * capability.
 */
const capabilitiesOf = ({ dataPath }: AgentConfig): Record<string, true> => ({
  dns: true,
  ips: true,
  ipRanges: true,
  mac: true,
  ...(dataPath === "hns" ? { portMappings: true } : {}),
});

/** Where the file goes; `undefined` where the configuration wants none. */
export function conflistPath(config: AgentConfig): string | undefined {
  return config.cni.fileName === "" ? undefined : join(config.cni.confDir, config.cni.fileName);
}

/** The extensions of files that runtimes load. */
const endings = [".conf", ".conflist", ".json"];

/** Sentences about other plugins' files that a runtime would use instead of ours, since it takes the first by name. */
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
