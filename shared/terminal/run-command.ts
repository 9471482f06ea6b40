import { CniError } from "../errors.ts";
import { isDenial, isUnprivileged, whoMay } from "../os/rights.ts";
import { didYouMean } from "../schema/near.ts";
import type { Command, CommandGroup } from "./command.ts";
import { exitStatus } from "./exit-status.ts";
import { helpOf } from "./help.ts";
import { orList, parseLine } from "./parse-line.ts";
import { printable, printableLines } from "./printable.ts";
import type { TerminalIo } from "./terminal-io.ts";

/**
 * Finds the command that `args` name and runs it. An error is printed on stderr.
 * @param path what was typed so far: `pipette`, `pipette ipam`
 * @returns exit status: one of `exitStatus`
 */
export async function runCommand(
  path: string,
  node: Command | CommandGroup,
  args: readonly string[],
  io: TerminalIo,
): Promise<number> {
  if (node.kind === "command") return runLeaf(path, node, args, io);
  const [name, ...rest] = args;
  if (name === "--help" || name === "-h" || name === "help") {
    io.stdout(helpOf(path, node));
    return exitStatus.done;
  }
  const entry = node.entries.find((candidate) => candidate.name === name);
  if (entry !== undefined) return runCommand(`${path} ${entry.name}`, await entry.load(), rest, io);
  const names = node.entries.filter(({ hidden }) => !hidden).map((candidate) => candidate.name);
  // Without a command the help is printed too; with a wrong one only the names.
  if (name === undefined)
    io.stderr(`Cannot run "${path}": the command is missing, wanted ${orList(names)}\n\n${helpOf(path, node)}`);
  else {
    const is = `"${printable(name)}"${didYouMean(name, names)}`;
    io.stderr(`Cannot run "${path}": the command is ${is}, wanted ${orList(names)}\n"${path} --help" tells more\n`);
  }
  return exitStatus.wrongArguments;
}

async function runLeaf(path: string, command: Command, args: readonly string[], io: TerminalIo): Promise<number> {
  const parsed = parseLine(command, args);
  if (parsed.t === "help") {
    io.stdout(helpOf(path, command));
    return exitStatus.done;
  }
  if (parsed.t === "wrong") {
    io.stderr(`Cannot ${command.action}: ${printable(parsed.problem)}\n"${path} --help" tells more\n`);
    return exitStatus.wrongArguments;
  }
  try {
    return await command.run(parsed.line, io);
  } catch (caught) {
    const { message, details } = CniError.from(caught, command.action);
    const root = isDenial(caught) && isUnprivileged() ? `It wants ${whoMay}, which this user is not\n` : "";
    io.stderr(`${printableLines(message)}\n${details === "" ? "" : `${printableLines(details)}\n`}${root}`);
    return exitStatus.failed;
  }
}
