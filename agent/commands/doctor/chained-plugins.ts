import type { AgentConfig } from "../../config/agent-config.ts";
import { isBesideOurs, whereIs } from "../../conflist/chained-plugins.ts";
import { chainedIn } from "../../conflist/listed-plugins.ts";
import type { Finding } from "./finding.ts";

/** Whether the runtime finds the plugins that it is to run after ours: without one every ADD fails. */
export function pluginFindings(config: AgentConfig, path: string, conflist: string): readonly Finding[] {
  const types = chainedIn(conflist);
  const isDefault = config.cni.plugins === undefined && config.dataPath !== "hns";
  return [
    ...types.flatMap((type) => missing(type, path)),
    ...(isDefault && !types.includes("portmap") ? [withoutHostPorts(path)] : []),
  ];
}

function missing(type: string, path: string): readonly Finding[] {
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
