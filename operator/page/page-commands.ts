import { Refusal } from "../../shared/access/mod.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import type { CommandAnswer, CommandInput } from "../../ui/stream/wire.ts";
import type { Commands } from "./entrance.ts";

/** Starts this program once more. */
export interface OwnProgram {
  run(
    args: readonly string[],
    options: {
      readonly deadlineMs: number;
      readonly input: string;
      readonly maxBytes: number;
      /** Variables in addition to this process's own. */
      readonly env?: Readonly<Record<string, string>>;
    },
  ): Promise<{ readonly stdout: string; readonly stderr: string; readonly failure: string; readonly status?: number }>;
}

/** Where the page's commands ask. */
export interface CommandPlaces {
  /** Options that name the API server, where there is one. */
  readonly cluster?: readonly string[];
  /** Options that name the agent's configuration, where this machine is the node that is shown. */
  readonly node?: readonly string[];
  /** Options of the way by which agents are asked to follow packets; absent: they are not. */
  readonly agents?: readonly string[];
  /** Variables that name files, as seen from everywhere. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A name of a pod with its namespace, an address, a port; everything that a field holds, but for a file's text. */
const maxFieldChars = 600;
/** Policies that somebody pastes. */
const maxPastedChars = 1024 * 1024;
/** A large cluster is compared pod by pod. */
const deadlineMs = 60_000;
const maxBytes = 16 * 1024 * 1024;
/** Programs at a time: a person starts one after the other. */
const maxRunning = 4;

type Fields = Readonly<Record<string, string>>;

interface PageCommand {
  readonly needs: "cluster" | "node" | "agents";
  /** Names of the fields that must be there. */
  readonly fields: readonly string[];
  args(fields: Fields): readonly string[];
  input?(fields: Fields): string;
}

const tracedPort = ({ protocol = "", port = "" }: Fields): readonly string[] =>
  port === "" ? [] : [protocol === "udp" ? "--udp" : "--tcp", port];

/** Shorter than what a command may take. */
const liveFor = "45s";

const followedPort = (fields: Fields): readonly string[] =>
  (fields["port"] ?? "") === "" ? ["--icmp"] : tracedPort(fields);

/** A trace of packets that agents follow. */
const followed = (fields: Fields, ...manner: readonly string[]): readonly string[] => [
  ...["trace", fields["from"] ?? "", fields["to"] ?? "", ...manner],
  ...[...followedPort(fields), "-o", "json"],
];

const judgedPort = ({ protocol = "", port = "" }: Fields): readonly string[] =>
  port === "" ? [] : ["--port", port, ...(protocol === "" ? [] : ["--protocol", protocol])];

/** All that a page may have run: commands that a person could type, each with its fixed options. */
const commands: Readonly<Record<string, PageCommand>> = {
  policies: { needs: "cluster", fields: [], args: () => ["policy", "list", "--json"] },
  matrix: { needs: "cluster", fields: [], args: () => ["policy", "matrix", "--json"] },
  why: {
    needs: "cluster",
    fields: ["from", "to"],
    args: (fields) => ["policy", "why", fields["from"] ?? "", fields["to"] ?? "", ...judgedPort(fields), "--json"],
  },
  "what-if": {
    needs: "cluster",
    fields: ["policies"],
    args: () => ["policy", "what-if", "-f", "-", "--json"],
    input: (fields) => fields["policies"] ?? "",
  },
  trace: {
    needs: "node",
    fields: ["from", "to"],
    args: (fields) => ["trace", fields["from"] ?? "", fields["to"] ?? "", ...tracedPort(fields), "--json"],
  },
  inject: {
    needs: "agents",
    fields: ["from", "to"],
    args: (fields) => followed(fields, "--inject"),
  },
  live: {
    needs: "agents",
    fields: ["from", "to"],
    args: (fields) =>
      followed(fields, "--live", ...(fields["dropped"] === "yes" ? ["--dropped"] : []), "--follow", liveFor),
  },
  doctor: { needs: "node", fields: [], args: () => ["doctor", "--json"] },
  repair: { needs: "node", fields: [], args: () => ["doctor", "--repair", "--json"] },
};

/** Runs what the page asks for: nothing but these commands, without a shell, within bounds. */
export class PageCommands implements Commands {
  readonly #program: OwnProgram;
  readonly #places: CommandPlaces;
  readonly #only: readonly string[] | undefined;
  #running = 0;

  /** @param only names of those that are offered; absent: all that can be run */
  constructor(program: OwnProgram, places: CommandPlaces, only?: readonly string[]) {
    this.#program = program;
    this.#places = places;
    this.#only = only;
  }

  get names(): readonly string[] {
    return Object.keys(commands).filter((name) => this.#isOffered(name));
  }

  /** @param input as it came @throws {Refusal} */
  async run(input: unknown): Promise<CommandAnswer> {
    const { name, fields, preview } = readInput(input);
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (command === undefined || !this.#isOffered(name)) throw new Refusal(404, `there is no command "${name}" here`);
    for (const field of command.fields)
      if ((fields[field] ?? "") === "") throw new Refusal(422, `the field "${field}" is empty`);
    const args = command.args(fields);
    const where = this.#places[command.needs] ?? [];
    const line = ["pipette", ...args, ...where].map(quoted).join(" ");
    if (preview === true) return { line };
    if (this.#running >= maxRunning) throw new Refusal(429, "other commands are still running", 1);
    this.#running++;
    try {
      const options = { deadlineMs, maxBytes, input: command.input?.(fields) ?? "", env: this.#places.env ?? {} };
      const { stdout, stderr, failure, status } = await this.#program.run([...args, ...where], options);
      const json = jsonOf(stdout);
      const said = [stderr.trim(), status === undefined ? failure : ""].filter((text) => text !== "").join("\n");
      return { line, status: status ?? -1, ...(json === undefined ? {} : { json }), said };
    } finally {
      this.#running--;
    }
  }

  #isOffered(name: string): boolean {
    const command = commands[name];
    const isThere = command !== undefined && this.#places[command.needs] !== undefined;
    return isThere && this.#only?.includes(name) !== false;
  }
}

function readInput(input: unknown): CommandInput {
  if (!isObject(input)) throw new Refusal(400, "the body is no object");
  const { name, fields, preview } = input;
  if (typeof name !== "string" || !isObject(fields)) throw new Refusal(400, "the body names no command");
  const read: Record<string, string> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value !== "string") throw new Refusal(400, `the field "${key}" is no text`);
    const isText = key === "policies";
    if (value.length > (isText ? maxPastedChars : maxFieldChars))
      throw new Refusal(413, `the field "${key}" is too long`);
    // What stands on a command line must not be taken for an option, nor end a line of what is shown.
    if (!isText && (value.startsWith("-") || [...value].some((char) => char < " ")))
      throw new Refusal(422, `the field "${key}" is no name, address or number`);
    read[key] = value;
  }
  return { name, fields: read, preview: preview === true };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** As a shell reads it back. */
const quoted = (word: string): string =>
  word !== "" &&
  [...word].every((char) => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@".includes(char))
    ? word
    : `'${word.replaceAll("'", "'\\''")}'`;
