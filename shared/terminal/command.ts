import type { TerminalIo } from "./terminal-io.ts";

/**
 * Values that only the node's data can tell: completion runs `<program> ipam names KIND`, with the options of the line
 * that say where the data lies.
 */
export interface Asked {
  readonly ask: string;
}

/** The options that say where the data lies, passed on as they were typed. */
export const whereOptions = ["--data-dir", "--conf"] as const;

/** One option of a command, for parsing, help and completion. */
export interface OptionSpec {
  /** The placeholder of its value in the help, such as `FILE`; absent: it is a switch. */
  readonly value?: string;
  /** One letter, which may be written for its name: `n` for `-n`. */
  readonly short?: string;
  readonly help: string;
  /** What a value can be: completion offers it, and a value outside a list is refused. */
  readonly of?: "file" | "directory" | readonly string[] | Asked;
  /** Answers what is wrong with a value, or `undefined` if it is valid; and what is wanted instead. */
  readonly rule?: { readonly wrong: (text: string) => string | undefined; readonly wanted: string };
  readonly required?: true;
  /** May be given several times. */
  readonly repeats?: true;
}

/** What stands on the command line without a name. */
export interface OperandSpec {
  /** In capitals, as the help shows it. */
  readonly name: string;
  readonly help: string;
  readonly of?: OptionSpec["of"];
  readonly optional?: true;
  readonly mayBeEmpty?: true;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type ValueOf<O extends OptionSpec> = O extends { readonly value: string }
  ? O extends { readonly repeats: true }
    ? readonly string[]
    : O extends { readonly required: true }
      ? string
      : string | undefined
  : boolean;

/** A command line that fits its command. */
export interface CommandLine<O extends OptionSpecs> {
  readonly options: { readonly [K in keyof O]: ValueOf<O[K]> };
  readonly operands: readonly string[];
}

/** A command line of any command. */
export interface AnyCommandLine {
  readonly options: Readonly<Record<string, string | readonly string[] | boolean | undefined>>;
  readonly operands: readonly string[];
}

interface CommandSpec<O extends OptionSpecs, Line> {
  /** The action in error messages: "list leases". */
  readonly action: string;
  /** The help's text, in lines. */
  readonly about: string;
  readonly operands?: readonly OperandSpec[];
  readonly options: O;
  /** The meaning of each exit status; those that every command has are added. */
  readonly exits?: Readonly<Record<number, string>>;
  run(line: Line, io: TerminalIo): Promise<number>;
}

export interface Command extends CommandSpec<OptionSpecs, AnyCommandLine> {
  readonly kind: "command";
}

/** Commands under one name. */
export interface CommandGroup {
  readonly kind: "group";
  readonly about: string;
  readonly entries: readonly CommandEntry[];
}

/** An entry of the table of commands; the command is loaded when it is used. */
export interface CommandEntry {
  readonly name: string;
  /** One line without a full stop. */
  readonly summary: string;
  /** For our own scripts: hidden from help and completion. */
  readonly hidden?: true;
  load(): Promise<Command | CommandGroup>;
}

/** Ties the type of the values to the table of options. */
export function defineCommand<const O extends OptionSpecs>(spec: CommandSpec<O, CommandLine<O>>): Command {
  // The parser answers values of these types, which the compiler cannot infer.
  return { kind: "command", ...spec } as unknown as Command;
}

export const defineGroup = (group: Omit<CommandGroup, "kind">): CommandGroup => ({ kind: "group", ...group });
