import { randomUUID } from "node:crypto";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Answer, brief, readAnswer } from "./answer.ts";
import { type Listing, type Row, renderPipeline, renderScript, type Statement } from "./script.ts";

/** Runs commands on the node. `openHostRunner()` makes the real one. */
export interface HostRunner {
  /**
   * Runs the statements in order, in one process, up to the first that fails.
   * @param action for messages, as in "Cannot <action>: …"
   * @returns the rows of each listing, under its place in `statements`
   * @throws {CniError} 102 naming the action, the statement and what it said; what stands before it has been done
   */
  run(action: string, statements: readonly (Statement | Listing)[]): Promise<ReadonlyMap<number, readonly Row[]>>;
  /** Waits between two looks at what takes Windows a moment. */
  pause(ms: number): Promise<void>;
}

/** How a process ended. `failure` is empty where it came to an end of its own, with status 0. */
export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly failure: string;
}

/** Runs one script in a process of its own. Never rejects, and ends within a bound of its own. */
export type ScriptProcess = (script: string) => Promise<Ended>;

/** A runner that believes nothing but a whole answer to its own question. */
export function createHostRunner(execute: ScriptProcess): HostRunner {
  return {
    run: async (action, statements) => {
      if (statements.length === 0) return new Map();
      const marker = `#${randomUUID()}#`;
      const ended = await execute(renderScript(statements, marker));
      const answer = readAnswer(ended.stdout, marker);
      if (answer.t === "failed") throw refused(action, statements[answer.at], answer);
      // A whole answer of a process that was killed, or failed afterwards, is none.
      if (answer.t === "none" || ended.failure !== "") throw unanswered(action, statements, ended, answer);
      const silent = statements.findIndex((statement, at) => "fields" in statement && !answer.tables.has(at));
      if (silent >= 0) throw unanswered(action, statements, ended, { t: "none", is: `without table ${silent}` });
      return answer.tables;
    },
    pause: (ms) => Bun.sleep(ms),
  };
}

/** PowerShell ran, and a cmdlet said no. */
function refused(action: string, statement: Statement | undefined, answer: Answer & { t: "failed" }): CniError {
  const { cmdlet } = statement?.into ?? statement ?? { cmdlet: "the script" };
  const missing = answer.id.startsWith("CommandNotFoundException");
  const wanted = missing ? "the Windows feature that this cmdlet comes with" : "success";
  const pipeline = statement === undefined ? "" : `: ${renderPipeline(statement)}`;
  return new CniError(
    CniCode.interfaceFailure,
    `Cannot ${action}: ${cmdlet} says ${brief(answer.message)}, wanted ${wanted}`,
    { details: `${answer.id}${pipeline}` },
  );
}

/** There is no telling what was done, so the caller must look. */
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
