import { supportedVersions } from "./shared/cni/versions.ts";
import { version } from "./shared/version.ts";

const usage = `Usage: pipette <command>

  agent --config FILE [--check]   run the node agent, or only check its configuration
  status [--socket PATH] [--json] what the agent says: networks, problems, calls
  ipam list [--json]              the leases of this node (see "pipette ipam --help")
  version                         Pipette's version and the CNI versions that it speaks

Started by a container runtime (with CNI_COMMAND in the environment) it is a CNI plugin.
`;

/**
 * The faces at a terminal, each imported when it is asked for.
 * @returns exit status: 0 done, 1 failed, 2 wrong arguments
 */
export async function runTerminal(isIpam: boolean, args: readonly string[]): Promise<number> {
  const [command = "", ...rest] = args;
  if (isIpam && command === "") {
    console.error(`${about("pipette-ipam", "CNI IPAM plugin")}\n`);
    return 0;
  }
  const io = { stdout: write("stdout"), stderr: write("stderr"), env: process.env };
  switch (command) {
    case "agent":
      return (await import("./agent/mod.ts")).runAgentCommand(rest, io);
    case "status":
      return (await import("./agent/mod.ts")).runStatusCommand(rest, io);
    case "ipam":
      return (await import("./ipam/mod.ts")).runIpamCommand(rest, io);
    case "version":
    case "--version":
      console.log(about("pipette", "CNI plugin and node agent"));
      return 0;
    case "help":
    case "--help":
    case "-h":
      console.log(usage);
      return 0;
    case "":
      console.error(`${about("pipette", "CNI plugin and node agent")}\n\n${usage}`);
      return 0;
    default:
      console.error(`Cannot run "${command}": there is no such command\n\n${usage}`);
      return 2;
  }
}

const about = (name: string, what: string): string =>
  `${name} ${version}: ${what}\nCNI protocol versions supported: ${supportedVersions.join(", ")}`;

const write =
  (stream: "stdout" | "stderr") =>
  (text: string): void => {
    process[stream].write(text);
  };
