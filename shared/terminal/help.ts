import type { Command, CommandGroup, OptionSpec } from "./command.ts";
import { isList, orList } from "./parse-line.ts";

/** @param path the command as it is typed: `pipette ipam list` */
export function helpOf(path: string, node: Command | CommandGroup): string {
  return node.kind === "group" ? groupHelp(path, node) : commandHelp(path, node);
}

function groupHelp(path: string, { about, entries }: CommandGroup): string {
  const rows = entries.filter(({ hidden }) => !hidden).map(({ name, summary }) => [name, summary] as const);
  return `Usage: ${path} COMMAND\n\n${about}\n\n${columns(rows)}\n"${path} COMMAND --help" tells more.\n`;
}

function commandHelp(path: string, command: Command): string {
  const { about, operands = [], options, exits = {} } = command;
  const needed = Object.entries(options)
    .filter(([, { required }]) => required === true)
    .map(([name, spec]) => ` ${written(name, spec)}`)
    .join("");
  const behind = operands.map(({ name, optional }) => ` ${optional === true ? `[${name}]` : name}`).join("");
  const rows = [
    ...operands.map(({ name, help }) => [name, help] as const),
    ...Object.entries(options).map(([name, spec]) => [written(name, spec), helpText(spec)] as const),
    ["-h, --help", "this text"] as const,
  ];
  const all: Readonly<Record<number, string>> = { 0: "done", 1: "failed", 2: "wrong arguments", ...exits };
  const statuses = Object.entries(all).map(([status, meaning]) => [status, meaning] as const);
  return `Usage: ${path}${needed} [OPTIONS]${behind}\n\n${about}\n\n${columns(rows)}\nExit status:\n${columns(statuses)}`;
}

const written = (name: string, { value, short }: OptionSpec): string =>
  `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;

function helpText({ help, of, repeats }: OptionSpec): string {
  const choice = isList(of) ? `: ${orList(of)}` : "";
  return `${help}${choice}${repeats === true ? "; may be repeated" : ""}`;
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows
    .map(([name, text]) => `  ${name.padEnd(width)}  ${text.replaceAll("\n", `\n${" ".repeat(width + 4)}`)}\n`)
    .join("");
}
