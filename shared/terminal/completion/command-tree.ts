import type { Command, CommandEntry, CommandGroup, OptionSpec } from "../command.ts";

/** The whole table of commands, loaded, in the shape that the completion scripts are made of. */
export interface CommandTree {
  /** As typed behind the program's name: `/ipam/list`; empty for the program itself. */
  readonly path: string;
  readonly node: Command | CommandGroup;
  readonly children: readonly { readonly entry: CommandEntry; readonly tree: CommandTree }[];
}

export async function loadTree(node: Command | CommandGroup, path = ""): Promise<CommandTree> {
  const entries = node.kind === "group" ? node.entries.filter(({ hidden }) => !hidden) : [];
  const load = async (entry: CommandEntry) => ({
    entry,
    tree: await loadTree(await entry.load(), `${path}/${entry.name}`),
  });
  return { path, node, children: await Promise.all(entries.map(load)) };
}

/** A word that completion offers, with its line of help. */
export interface Word {
  readonly word: string;
  readonly help: string;
}

/** What can stand at one place of the tree. */
export interface Place {
  readonly path: string;
  /** Names of commands. */
  readonly commands: readonly Word[];
  readonly options: readonly Word[];
  /** Options that take a value, with the kind of value; `undefined`: any. */
  readonly values: readonly { readonly option: string; readonly of: OptionSpec["of"] }[];
  /** The kind of the first operand. */
  readonly operand: OptionSpec["of"];
}

/** Every place of the tree, the program itself first. */
export function placesOf(tree: CommandTree): readonly Place[] {
  const { path, node, children } = tree;
  const options = node.kind === "command" ? Object.entries(node.options) : [];
  const place: Place = {
    path,
    commands: children.map(({ entry }) => ({ word: entry.name, help: entry.summary })),
    options: [
      ...options.map(([name, { help }]) => ({ word: `--${name}`, help: firstLine(help) })),
      { word: "--help", help: "this text" },
    ],
    values: options
      .filter(([, { value }]) => value !== undefined)
      .map(([name, { of }]) => ({ option: `--${name}`, of })),
    operand: node.kind === "command" ? node.operands?.[0]?.of : undefined,
  };
  return [place, ...children.flatMap((child) => placesOf(child.tree))];
}

const firstLine = (text: string): string => text.split("\n")[0] ?? "";
