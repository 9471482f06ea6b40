import type { Command, CommandGroup } from "../../shared/terminal/command.ts";
import { runCommand } from "../../shared/terminal/run-command.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";

export interface TerminalRun {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** For tests: a command as typed behind `path`, in this process, without a terminal unless `around` says otherwise. */
export async function runAt(
  path: string,
  node: Command | CommandGroup,
  args: readonly string[],
  around: Partial<Omit<TerminalIo, "stdin">> & { readonly stdin?: string } = {},
): Promise<TerminalRun> {
  const out = { stdout: "", stderr: "" };
  const { stdin = "", ...others } = around;
  const io: TerminalIo = {
    stdout: (text) => {
      out.stdout += text;
    },
    stderr: (text) => {
      out.stderr += text;
    },
    stdin: async () => new TextEncoder().encode(stdin),
    env: {},
    stderrIsTerminal: false,
    ...others,
  };
  return { status: await runCommand(path, node, args, io), ...out };
}
