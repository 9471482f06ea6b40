import { CniCode, CniError } from "../../../shared/errors.ts";
import type { ClusterAccess } from "../../../shared/kubernetes/mod.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { runCommand } from "../../../shared/terminal/run-command.ts";
import { policyCommands } from "./policy-commands.ts";

/**
 * For how long a command may keep a server from its other work: a matrix of few thousand pods takes less, and one of a
 * large cluster is for somebody's own machine.
 */
const longestBusyMs = 500;

export interface HostedOptions {
  /** The API server, and the person who asks it. */
  readonly access: ClusterAccess;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard input. */
  readonly input: string;
  /** Of what it prints. */
  readonly maxBytes: number;
}

/**
 * Runs one of `pipette policy` inside of a server for a person whose rights it has, without another process.
 * @param args beginning with `policy`
 */
export async function runHostedPolicy(
  [first, ...args]: readonly string[],
  { access, env, input, maxBytes }: HostedOptions,
): Promise<{ readonly stdout: string; readonly stderr: string; readonly failure: string; readonly status?: number }> {
  let [stdout, stderr] = ["", ""];
  const add = (before: string, text: string): string => {
    if (before.length + text.length > maxBytes) throw new Error(`it prints more than ${maxBytes} bytes`);
    return before + text;
  };
  try {
    if (first !== "policy") throw new Error(`"${first}" is not one of "pipette policy"`);
    const status = await runCommand("pipette policy", policyCommands, args, {
      stdout: (text) => {
        stdout = add(stdout, text);
      },
      stderr: (text) => {
        stderr = add(stderr, text);
      },
      stdin: async () => new TextEncoder().encode(input),
      env,
      stderrIsTerminal: false,
      hosted: { access, watch: watchOf() },
    });
    return { stdout, stderr, failure: "", status };
  } catch (caught) {
    return { stdout: "", stderr, failure: reasonOf(caught) };
  }
}

/** Ends work that goes on for too long without a pause, by the processor's time: a busy machine is not its fault. */
function watchOf(): { rested(): void; works(): void } {
  const usedMs = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  let since = usedMs();
  return {
    rested: () => {
      since = usedMs();
    },
    works: () => {
      if (usedMs() - since < longestBusyMs) return;
      const is = `it takes more than ${longestBusyMs} ms, and others are served here as well`;
      throw new CniError(CniCode.tryAgainLater, `Cannot compare the pods: ${is}, wanted the command at a terminal`);
    },
  };
}
