import { type Command, type CommandGroup, defineCommand } from "../command.ts";
import { exitStatus } from "../exit-status.ts";
import { bashCompletion } from "./bash.ts";
import { loadTree, type Place, placesOf } from "./command-tree.ts";
import { powershellCompletion } from "./powershell.ts";
import { zshCompletion } from "./zsh.ts";

const shells: Readonly<Record<string, (program: string, places: readonly Place[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  powershell: powershellCompletion,
};

/** `pipette completion SHELL`: a script for the shell, made from the table of commands `root`. */
export const completionCommand = (program: string, root: () => Command | CommandGroup): Command =>
  defineCommand({
    action: "print a completion script",
    about: `Prints a script that completes ${program}'s commands, options and their values.

  bash        source <(${program} completion bash)
  zsh         source <(${program} completion zsh)     after compinit
  PowerShell  ${program} completion powershell | Out-String | Invoke-Expression

In the shell's start-up file it holds for every session.`,
    operands: [{ name: "SHELL", help: "bash, zsh or powershell", of: Object.keys(shells) }],
    options: {},
    run: async ({ operands: [shell = ""] }, io) => {
      io.stdout(shells[shell]?.(program, placesOf(await loadTree(root()))) ?? "");
      return exitStatus.done;
    },
  });
