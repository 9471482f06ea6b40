import type { AgentConfig } from "../../config/agent-config.ts";
import { isBesideOurs, usualOf, whereIs } from "../../conflist/chained-plugins.ts";
import { conflistPath, conflistText, foreignBefore } from "../../conflist/conflist.ts";
import { chainedIn, readIfThere, versionsIn } from "../../conflist/listed-plugins.ts";
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
  // Only the agent knows the subnets of a registry, and the directory and versions of plugins, so those are taken from
  // the file.
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

/** Whether the runtime finds the plugins that it is to run after ours: without one every ADD fails. */
export function pluginFindings(config: AgentConfig, path: string, conflist: string): readonly Finding[] {
  const types = chainedIn(conflist);
  const isDefault = config.cni.plugins === undefined && config.dataPath !== "hns";
  return [
    ...types.flatMap((type) => missingPlugin(type, path)),
    ...(isDefault && !types.includes("portmap") ? [withoutHostPorts(path)] : []),
  ];
}

function missingPlugin(type: string, path: string): readonly Finding[] {
  const at = whereIs(type);
  if (at !== undefined && isBesideOurs(at)) return [];
  const common = { code: "plugin-missing", trusts: "the directory of plugins", evidence: type };
  const todo = `put "${type}" where "pipette" is, or take it out of "cni.plugins" in agent.yaml, and start the agent again`;
  if (at !== undefined)
    return [
      {
        ...common,
        severity: "warning",
        what: `The plugin "${type}" of "${path}" is at "${at}", and not beside "pipette"`,
        why: "podman finds it there; with containerd and CRI-O, which look in one directory, every new pod fails",
        todo,
      },
    ];
  return [
    {
      ...common,
      severity: "error",
      what: `The plugin "${type}" of "${path}" is not on this node`,
      why: "The runtime runs all plugins of the list or none: every new pod fails",
      todo,
    },
  ];
}

const withoutHostPorts = (path: string): Finding => ({
  severity: "note",
  code: "no-host-ports",
  what: `"${path}" has no plugin for host ports`,
  why: 'The agent found no "portmap" beside "pipette" when it started: "hostPort" of pods and "podman run -p" do nothing',
  todo: 'put "portmap" there (Debian has it in /usr/lib/cni, package containernetworking-plugins) and start the agent again; "cni.plugins: []" in agent.yaml says that nobody wants it',
  evidence: path,
});
