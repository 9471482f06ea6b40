import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { parseJson } from "../../../../shared/schema/json.ts";
import { isObject } from "../../../../shared/schema/json-fields.ts";
import { commandMs, runProgram } from "../../../platform/run-program.ts";
import { type Listing, type Row, renderPipeline, renderScript, type Statement } from "./script.ts";

/** Runs commands on the node. `openHostRunner()` makes the real one. */
export interface HostRunner {
  /**
   * Runs the statements in order, in one process, up to the first that fails.
   * @param action for messages, as in "Cannot <action>: …"
   * @returns the rows of each listing, under its place in `statements`
   * @throws {CniError} 102 naming the action, the statement and its error; earlier statements have been done
   */
  run(action: string, statements: readonly (Statement | Listing)[]): Promise<ReadonlyMap<number, readonly Row[]>>;
  /** Waits between two checks of something that takes Windows a moment. */
  pause(ms: number): Promise<void>;
}

/** How a process ended. `failure` is empty if it ended by itself with status 0. */
export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly failure: string;
}

/** Runs one script in a process of its own. Never rejects, and ends within a bound of its own. */
export type ScriptProcess = (script: string) => Promise<Ended>;

/** A runner that accepts only a complete answer to its own command. */
export function createHostRunner(execute: ScriptProcess): HostRunner {
  return {
    run: async (action, statements) => {
      if (statements.length === 0) return new Map();
      const marker = `#${randomUUID()}#`;
      const ended = await execute(renderScript(statements, marker));
      const answer = readAnswer(ended.stdout, marker);
      if (answer.t === "failed") throw refused(action, statements[answer.at], answer);
      // A complete answer does not count if the process was killed or failed afterwards.
      if (answer.t === "none" || ended.failure !== "") throw unanswered(action, statements, ended, answer);
      const silent = statements.findIndex((statement, at) => "fields" in statement && !answer.tables.has(at));
      if (silent >= 0) throw unanswered(action, statements, ended, { t: "none", is: `without table ${silent}` });
      return answer.tables;
    },
    pause: (ms) => Bun.sleep(ms),
  };
}

/** PowerShell ran, and a cmdlet failed. */
function refused(action: string, statement: Statement | undefined, answer: Answer & { t: "failed" }): CniError {
  const { cmdlet } = statement?.into ?? statement ?? { cmdlet: "the script" };
  const missing = answer.id.startsWith("CommandNotFoundException");
  const wanted = missing ? ", wanted the Windows feature that this cmdlet comes with" : "";
  const pipeline = statement === undefined ? "" : `: ${renderPipeline(statement)}`;
  return new CniError(CniCode.interfaceFailure, `Cannot ${action}: ${cmdlet} says ${brief(answer.message)}${wanted}`, {
    details: `${answer.id}${pipeline}`,
  });
}

/** It is unknown what was done, so the caller must check. */
function unanswered(action: string, statements: readonly Statement[], ended: Ended, answer: Answer): CniError {
  const came = answer.t === "none" ? answer.is : "a whole answer";
  const is = [
    `PowerShell answered ${came}`,
    ...(ended.failure === "" ? [] : [ended.failure]),
    ...(ended.stderr.trim() === "" ? [] : [`it said ${brief(ended.stderr)}`]),
  ].join("; ");
  return new CniError(
    CniCode.interfaceFailure,
    `Cannot ${action}: ${is}, wanted a whole answer between this call's markers`,
    { details: statements.map(renderPipeline).join("\n") },
  );
}

/** A command's answer: the rows of each listing by the index of its statement, or the error and its place. */
export type Answer =
  | { readonly t: "tables"; readonly tables: ReadonlyMap<number, readonly Row[]> }
  | { readonly t: "failed"; readonly at: number; readonly message: string; readonly id: string }
  /** No complete answer: `is` says what came instead. */
  | { readonly t: "none"; readonly is: string };

/**
 * Reads the output of a script of `renderScript`. Only text between two of this call's markers counts, so no output, a
 * killed process, and half an answer are all failures.
 */
export function readAnswer(stdout: string, marker: string): Answer {
  const start = stdout.indexOf(marker);
  const end = stdout.lastIndexOf(marker);
  if (start < 0) return { t: "none", is: stdout.trim() === "" ? "nothing" : `only ${brief(stdout)}` };
  if (end === start) return { t: "none", is: `half an answer, ${brief(stdout.slice(start + marker.length))}` };
  const text = stdout.slice(start + marker.length, end);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { t: "none", is: `no JSON but ${brief(text)}` };
  }
  return shaped(value) ?? { t: "none", is: `JSON of another shape, ${brief(text)}` };
}

function shaped(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined;
  const { error, at, id, tables } = value;
  if (typeof error === "string" && typeof at === "number")
    return { t: "failed", at, message: error.trim(), id: typeof id === "string" ? id : "" };
  if (!isObject(tables)) return undefined;
  const read = new Map<number, readonly Row[]>();
  for (const [place, list] of Object.entries(tables)) {
    const rows = listOf(list)?.map(rowOf);
    if (rows === undefined || !/^\d+$/.test(place) || !rows.every((row) => row !== undefined)) return undefined;
    read.set(Number(place), rows);
  }
  return { t: "tables", tables: read };
}

function rowOf(value: unknown): Row | undefined {
  if (!isObject(value)) return undefined;
  const row: Record<string, string | readonly string[]> = {};
  for (const [name, field] of Object.entries(value)) {
    const read = typeof field === "string" ? field : listOf(field);
    if (typeof read === "string") row[name] = read;
    // An absent list comes as one empty text.
    else if (read?.every((entry) => typeof entry === "string")) row[name] = read.filter((entry) => entry !== "");
    else return undefined;
  }
  return row;
}

/** PowerShell 5.1 writes an array that its pipeline has wrapped as `{"value":[…],"Count":n}`. */
function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  return isObject(value) && Array.isArray(value["value"]) && value["Count"] === value["value"].length
    ? value["value"]
    : undefined;
}

/** For a message: one line, cut short. */
export function brief(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  return JSON.stringify(line.length <= 200 ? line : `${line.slice(0, 197)}...`);
}

const fixedArguments = ["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand"] as const;

/**
 * Runs commands in Windows PowerShell 5.1, which every Windows Server has: by its full path, with the system's modules
 * only, no profile, no prompt, a deadline, and a bound on its output.
 * @param deadlineMs of each command; then its process is killed
 */
export function openHostRunner(deadlineMs: number = commandMs): HostRunner {
  const home = `${process.env["SystemRoot"] ?? "C:\\Windows"}\\System32\\WindowsPowerShell\\v1.0`;
  const execute: ScriptProcess = (script) => spawn(home, script, deadlineMs);
  return createHostRunner(execute);
}

async function spawn(home: string, script: string, deadlineMs: number): Promise<Ended> {
  const file = `${home}\\powershell.exe`;
  // Checked first, because cmd.exe would search for a missing file elsewhere.
  if (!existsSync(file)) return { stdout: "", stderr: "", failure: `there is no "${file}"` };
  const encoded = Buffer.from(script, "utf16le").toString("base64");
  // The modules of another PowerShell, whose children inherit its path, do not load in this one.
  const env = { PSModulePath: `${home}\\Modules` };
  return runProgram(file, [...fixedArguments, encoded], { deadlineMs, env });
}
