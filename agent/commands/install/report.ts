import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import { Progress } from "../../../shared/terminal/progress.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { carryOut, type Left, notCarriedOut, type Outcome, type Plan } from "./step.ts";

export interface PlanOptions {
  readonly dryRun: boolean;
  readonly json: boolean;
  readonly progress: boolean;
}

/** Carries the plan out, or only shows it, and says what became of it. Answers the command's exit status. */
export async function runPlan(plan: Plan, options: PlanOptions, io: TerminalIo): Promise<number> {
  const outcome = options.dryRun ? notCarriedOut(plan) : await carriedOut(plan, options, io);
  const { left } = plan;
  if (options.json)
    io.stdout(formatJson({ ...asJson(outcome, options.dryRun), ...(left === undefined ? {} : { left }) }));
  else io.stdout(`${asText(outcome, options.dryRun)}${leftText(left ?? [])}`);
  for (const warning of outcome.warnings) io.stderr(`${printable(`Warning: ${warning}`)}\n`);
  if (outcome.failure === undefined) return exitStatus.done;
  const { message, details } = outcome.failure;
  io.stderr(`${printableLines(message)}\n${details === "" ? "" : `${printableLines(details)}\n`}`);
  return exitStatus.failed;
}

async function carriedOut(plan: Plan, options: PlanOptions, io: TerminalIo): Promise<Outcome> {
  using progress = new Progress(io, options.progress);
  return await carryOut(plan, (done, total) => progress.at("steps done", done, total));
}

function asJson({ steps, warnings, failure }: Outcome, dryRun: boolean) {
  const error = failure === undefined ? {} : { error: { code: failure.code, message: failure.message } };
  return { dryRun, steps, warnings, ...error };
}

function leftText(left: readonly Left[]): string {
  if (left.length === 0) return "";
  const rows = left.map(({ what, command }) => [what, command]);
  return `\n${formatTable([["WHAT STAYS", "WHAT TAKES IT AWAY"], ...rows])}`;
}

function asText({ steps, failure }: Outcome, dryRun: boolean): string {
  const changes = steps.filter(({ action }) => action !== "keep" && action !== "none");
  const rows = steps.map(({ action, target, detail, done }) => [
    done || dryRun ? action : `(${action})`,
    target,
    detail,
  ]);
  const table = formatTable([["ACTION", "TARGET", ""], ...rows]);
  if (dryRun) return `${table}nothing was changed: this is the plan\n`;
  if (failure !== undefined) return `${table}stopped half way: what stands in brackets was not done; run it again\n`;
  return `${table}${changes.length === 0 ? "nothing had to be changed" : "done"}\n`;
}
