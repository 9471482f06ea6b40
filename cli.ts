import { supportedVersions } from "./shared/cni/versions.ts";
import { boundedWriter } from "./shared/terminal/bounded-writer.ts";
import { type CommandGroup, defineCommand, defineGroup } from "./shared/terminal/command.ts";
import { completionCommand } from "./shared/terminal/completion/completion-command.ts";
import { exitStatus } from "./shared/terminal/exit-status.ts";
import { helpOf } from "./shared/terminal/help.ts";
import { runCommand } from "./shared/terminal/run-command.ts";
import type { TerminalIo } from "./shared/terminal/terminal-io.ts";
import { version } from "./shared/version.ts";

const about = (name: string, what: string): string =>
  `${name} ${version}: ${what}\nCNI protocol versions supported: ${supportedVersions.join(", ")}\n`;

const versionCommand = defineCommand({
  action: "say the version",
  about: "Shows Pipette's version and the CNI versions that it speaks.",
  options: {
    licenses: { help: "the licences of Pipette, and of all that is in this executable" },
  },
  run: async ({ options }, io) => {
    if (!options.licenses) {
      io.stdout(about("pipette", "CNI plugin and node agent"));
      return exitStatus.done;
    }
    const { licences } = await import("./shared/licences.ts");
    if (licences === undefined) {
      io.stderr('Cannot show the licences: these are sources, wanted an executable of "npm run build"\n');
      return exitStatus.failed;
    }
    io.stdout(`${licences}\n`);
    return exitStatus.done;
  },
});

/** The commands for a terminal, each imported when it is used. */
const pipette: CommandGroup = defineGroup({
  about: "Started by a container runtime (with CNI_COMMAND in the environment) it is a CNI plugin.",
  entries: [
    {
      name: "agent",
      summary: "run the node agent, or only check its configuration",
      load: async () => (await import("./agent/commands/agent/agent-command.ts")).agentCommand,
    },
    {
      name: "controller",
      summary: "compute the cluster's network policies for its nodes",
      load: async () =>
        (await import("./controller/controller-command.ts")).controllerCommand((access) => ({
          run: async (args, options) =>
            await (await import("./agent/commands/policy/hosted-policies.ts")).runHostedPolicy(args, {
              ...options,
              ...{ access, env: process.env },
            }),
        })),
    },
    {
      name: "get",
      summary: "what nodes have: pods, leases, addresses, services, policies, flows, findings, calls",
      load: async () => (await import("./operator/mod.ts")).getCommand,
    },
    {
      name: "status",
      summary: "what the agent says: networks, problems, calls",
      load: async () => (await import("./agent/commands/status/status-command.ts")).statusCommand,
    },
    {
      name: "doctor",
      summary: "what disagrees on this node, what to do about it, and the repair",
      load: async () => (await import("./agent/commands/doctor/doctor-command.ts")).doctorCommand,
    },
    {
      name: "why",
      summary: "why a pod has no network: the cause, what it rests on, what to do",
      load: async () => (await import("./agent/commands/why/why-command.ts")).whyCommand,
    },
    {
      name: "bundle",
      summary: "collect what somebody else needs to find a fault, without secrets",
      load: async () => (await import("./agent/commands/bundle/bundle-command.ts")).bundleCommand,
    },
    {
      name: "trace",
      summary: "a packet's way from pod to pod through Open vSwitch, in words",
      load: async () => (await import("./agent/commands/trace/trace-command.ts")).traceCommand,
    },
    {
      name: "log-level",
      summary: "what agents log: look, and change it while they run",
      load: async () => (await import("./operator/mod.ts")).logLevelCommand,
    },
    {
      name: "ipam",
      summary: "the addresses of this node: look, change, check, serve",
      load: async () => (await import("./ipam/mod.ts")).loadIpamCommands(),
    },
    {
      name: "nodes",
      summary: "the nodes of the cluster: look, register, release",
      load: async () => (await import("./agent/cluster/cli/commands.ts")).nodesCommands,
    },
    {
      name: "tenants",
      summary: "projects of the cluster, and who reaches whom",
      load: async () => (await import("./agent/cluster/cli/commands.ts")).tenantsCommands,
    },
    {
      name: "policy",
      summary: "network policies: who may reach whom and why, and what a change would do",
      load: async () => (await import("./agent/commands/policy/policy-commands.ts")).policyCommands,
    },
    {
      name: "services",
      summary: "the services that this node balances, and who answers for them",
      load: async () => (await import("./agent/commands/services/services-commands.ts")).servicesCommands,
    },
    {
      name: "ui",
      summary: "the network in a browser, served to this machine alone",
      load: async () =>
        (await import("./operator/page/mod.ts")).uiCommand(
          (await import("./agent/commands/own-program.ts")).ownProgram,
        ),
    },
    {
      name: "install",
      summary: "put Pipette on this node, or upgrade it",
      load: async () => (await import("./agent/commands/install/mod.ts")).installCommand,
    },
    {
      name: "uninstall",
      summary: "take Pipette off this node",
      load: async () => (await import("./agent/commands/install/mod.ts")).uninstallCommand,
    },
    {
      name: "completion",
      summary: "a completion script for bash, zsh or PowerShell",
      load: async () => completionCommand("pipette", () => pipette),
    },
    {
      name: "version",
      summary: "Pipette's version and the CNI versions that it speaks",
      load: async () => versionCommand,
    },
  ],
});

/** Names of the executable by which kubectl finds it (docs/operator.md). */
const kubectlNames = { plugin: "kubectl-pipette", completion: "kubectl_complete-pipette" } as const;

/** @param name of the executable, as it was started @returns exit status: one of `exitStatus` */
export async function runTerminal(name: string, args: readonly string[]): Promise<number> {
  const io = processTerminal();
  if (name === kubectlNames.completion) {
    const { cobraCompletion } = await import("./shared/terminal/completion/cobra.ts");
    io.stdout(await cobraCompletion(pipette, args));
    return exitStatus.done;
  }
  const words = args[0] === "--version" ? ["version"] : args;
  if (name === kubectlNames.plugin) return runCommand("kubectl pipette", pipette, words, { ...io, isKubectl: true });
  if (args.length > 0) return runCommand("pipette", pipette, words, io);
  const isIpam = name === "pipette-ipam";
  // The text that the CNI library prints when a plugin is started by hand.
  if (isIpam) io.stderr(about("pipette-ipam", "CNI IPAM plugin"));
  else io.stderr(`${about("pipette", "CNI plugin and node agent")}\n${helpOf("pipette", pipette)}`);
  return exitStatus.done;
}

function processTerminal(): TerminalIo {
  const { stdout, stderr } = process;
  // A reader that closes early, such as `head`, is no failure.
  stdout.on("error", (error: Error & { code?: string }) =>
    process.exit(error.code === "EPIPE" ? 0 : exitStatus.failed),
  );
  return {
    stdout: (text) => void stdout.write(text),
    stderr: boundedWriter(stderr),
    stdin: () => Bun.stdin.bytes(),
    env: process.env,
    ...(stdout.isTTY ? { columns: stdout.columns } : {}),
    stderrIsTerminal: stderr.isTTY,
  };
}
