import { CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import type { OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable, printableLines } from "../../../shared/terminal/printable.ts";
import { Progress } from "../../../shared/terminal/progress.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";

/** What a step does to its target; `keep` and `none` change nothing. */
export type StepAction = "create" | "replace" | "remove" | "start" | "restart" | "stop" | "register" | "keep" | "none";

/**
 * One step of the plan, decided without changing anything and carried out by `run`. Each step can be repeated, and a
 * kill during one leaves the old or the new state.
 */
export interface Step {
  readonly action: StepAction;
  /** A path, or the name of a service. */
  readonly target: string;
  readonly detail: string;
  /** Absent where there is nothing to do. May answer a better detail. */
  readonly run?: () => Promise<string | undefined>;
}

/** Something of ours that a removal leaves, and the command that removes it. */
export interface Left {
  readonly what: string;
  readonly command: string;
}

/** Steps in order, and warnings for the operator. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly warnings: readonly string[];
  /** What is ours and stays, with the command that removes it. */
  readonly left?: readonly Left[];
}

/** The outcome of a plan. */
export interface Outcome {
  readonly steps: readonly (Omit<Step, "run"> & { readonly done: boolean })[];
  readonly warnings: readonly string[];
  /** Why the remaining steps were not done. */
  readonly failure?: CniError;
}

/** Carries the steps out one after another, up to the first that fails. */
export async function carryOut(plan: Plan, onStep: (done: number, total: number) => void): Promise<Outcome> {
  const steps: Outcome["steps"][number][] = [];
  for (const { run, ...step } of plan.steps) {
    onStep(steps.length, plan.steps.length);
    try {
      const detail = await run?.();
      steps.push({ ...step, done: true, ...(detail === undefined ? {} : { detail }) });
    } catch (caught) {
      const failure = CniError.from(caught, `${step.action} "${step.target}"`);
      const rest = plan.steps.slice(steps.length).map(({ run: _, ...undone }) => ({ ...undone, done: false }));
      return { steps: [...steps, ...rest], warnings: plan.warnings, failure };
    }
  }
  return { steps, warnings: plan.warnings };
}

/** The plan as an outcome in which nothing has happened. */
export const notCarriedOut = ({ steps, warnings }: Plan): Outcome => ({
  steps: steps.map(({ run: _, ...step }) => ({ ...step, done: false })),
  warnings,
});

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

/** Options that both commands have. */
export const placeOptions = {
  "bin-dir": {
    value: "DIR",
    of: "directory",
    help: `where the runtime looks for plugins (default ${paths.cniBinDir})`,
  },
  "libexec-dir": {
    value: "DIR",
    of: "directory",
    help: `where the whole program goes, while the small one that hands calls to the agent goes where the runtime looks; it starts ${paths.wholeProgram}, so this is for a container that has the node's directory elsewhere`,
  },
  config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
  "link-dir": {
    value: "DIR",
    of: "directory",
    help: 'Linux: where "pipette" and "kubectl-pipette" are links to it (default /usr/local/bin, where PATH has that)',
  },
  "dry-run": { help: "only says what would be done" },
  json: { help: "the steps and warnings as one JSON object" },
  progress: { help: "says how far it has come on stderr, also where that is no terminal" },
} as const satisfies Readonly<Record<string, OptionSpec>>;
