import { nodesCommands, tenantsCommands } from "../../../agent/cluster/cli/commands.ts";
import { agentCommand } from "../../../agent/commands/agent/agent-command.ts";
import { bundleCommand } from "../../../agent/commands/bundle/bundle-command.ts";
import { doctorCommand } from "../../../agent/commands/doctor/doctor-command.ts";
import { installCommand, uninstallCommand } from "../../../agent/commands/install/mod.ts";
import { statusCommand } from "../../../agent/commands/status/status-command.ts";
import { traceCommand } from "../../../agent/commands/trace/trace-command.ts";
import { whyCommand } from "../../../agent/commands/why/why-command.ts";
import { loadIpamCommands } from "../../../ipam/mod.ts";
import { getCommand, logLevelCommand } from "../../../operator/mod.ts";
import { type Command, type CommandGroup, defineGroup } from "../../../shared/terminal/command.ts";
import { parseLine } from "../../../shared/terminal/parse-line.ts";
import { runCommand } from "../../../shared/terminal/run-command.ts";
import type { Opened, Target } from "../engine/target.ts";
import { requireHarmless, textOf } from "./words.ts";

const words = [
  ...[
    "agent",
    "status",
    "doctor",
    "trace",
    "ipam",
    "nodes",
    "tenants",
    "install",
    "uninstall",
    "list",
    "get",
    "why",
    "bundle",
    "log-level",
    "-o",
    "-A",
    "--watch",
    "map",
    "show",
  ],
  ...[
    "stats",
    "allocate",
    "release",
    "check",
    "gc",
    "import",
    "export",
    "serve",
    "register",
    "repair",
    "join",
    "isolate",
  ],
  ...[
    "--config",
    "--network",
    "--json",
    "--help",
    "-h",
    "--",
    "--repair",
    "--data-dir",
    "--socket",
    "--conf",
    "--state",
  ],
  ...["--constructor", "--toString", "--__proto__", "--hasOwnProperty", "=", "--no-json", "-abc", "help", "\n"],
];

/** Every command with its name, as `pipette` has them. */
async function commands(): Promise<{ readonly root: CommandGroup; readonly leaves: readonly Command[] }> {
  const entry = (name: string, node: Command | CommandGroup) => ({ name, summary: name, load: async () => node });
  const nodes: Readonly<Record<string, Command | CommandGroup>> = {
    ...{ agent: agentCommand, status: statusCommand, doctor: doctorCommand, trace: traceCommand },
    ...{ get: getCommand, why: whyCommand, bundle: bundleCommand, "log-level": logLevelCommand },
    ...{ ipam: await loadIpamCommands(), nodes: nodesCommands, tenants: tenantsCommands },
    ...{ install: installCommand, uninstall: uninstallCommand },
  };
  const leaves: Command[] = [];
  const shown = async (node: Command | CommandGroup): Promise<Command | CommandGroup> => {
    if (node.kind === "command") {
      // The line is read as it is; what the command then does is not for any line at all to start.
      const quiet: Command = { ...node, run: async () => 0 };
      leaves.push(quiet);
      return quiet;
    }
    const entries = await Promise.all(
      node.entries.map(async ({ name, load }) => entry(name, await shown(await load()))),
    );
    return defineGroup({ about: node.about, entries });
  };
  const entries = await Promise.all(Object.entries(nodes).map(async ([name, node]) => entry(name, await shown(node))));
  return { root: defineGroup({ about: "pipette", entries }), leaves };
}

/** A line that was taken names only options that the command has, each with a text. */
function requireKnown(command: Command, args: readonly string[]): void {
  const parsed = parseLine(command, args);
  if (parsed.t === "wrong") requireHarmless(parsed.problem.replaceAll(/[\p{C}\p{Z}]/gu, ""), "a problem");
  if (parsed.t !== "line") return;
  const end = args.indexOf("--");
  for (const arg of end < 0 ? args : args.slice(0, end)) {
    const name = /^--([^=]+)/.exec(arg)?.[1];
    const isValue =
      args.indexOf(arg) > 0 && Object.hasOwn(command.options, args[args.indexOf(arg) - 1]?.slice(2) ?? "");
    if (name !== undefined && !isValue && !Object.hasOwn(command.options, name))
      throw new Error(`The option --${name} was taken`);
  }
}

async function openCommands(): Promise<Opened> {
  const { root, leaves } = await commands();
  return {
    run: async (input) => {
      const args = textOf(input).split("\n");
      for (const command of leaves) requireKnown(command, args);
      let said = "";
      const status = await runCommand("pipette", root, args, {
        stdout: () => undefined,
        stderr: (text) => {
          said += text;
        },
        stdin: async () => new Uint8Array(0),
        env: {},
        stderrIsTerminal: false,
      });
      if (![0, 1, 2].includes(status)) throw new Error(`The status is ${status}`);
      for (const line of said.split("\n")) requireHarmless(line.slice(0, 4000), "what is said on a terminal");
    },
  };
}

export const commandLine: Target = {
  name: "command-line",
  what: "arguments of every command, a line each",
  mutators: [],
  dictionary: words,
  maxBytes: 1024,
  open: openCommands,
};
