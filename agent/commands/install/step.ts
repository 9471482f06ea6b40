import { CniError } from "../../../shared/errors.ts";

/** What a step does to its target; `keep` and `none` change nothing. */
export type StepAction = "create" | "replace" | "remove" | "start" | "restart" | "stop" | "register" | "keep" | "none";

/**
 * One line of the plan: decided by looking, without touching anything; carried out by `run`. Each step is harmless when
 * it is done again, and a kill within one leaves what was there, or what was to come.
 */
export interface Step {
  readonly action: StepAction;
  /** A path, or the name of a service. */
  readonly target: string;
  readonly detail: string;
  /** Absent where there is nothing to do. May answer a better detail. */
  readonly run?: () => Promise<string | undefined>;
}

/** Something of ours that a removal leaves, and the command that takes it away. */
export interface Left {
  readonly what: string;
  readonly command: string;
}

/** Steps in their order, and what the operator should know whatever becomes of them. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly warnings: readonly string[];
  /** What is ours and stays, with the command that takes it away. */
  readonly left?: readonly Left[];
}

/** How a plan went. */
export interface Outcome {
  readonly steps: readonly (Omit<Step, "run"> & { readonly done: boolean })[];
  readonly warnings: readonly string[];
  /** Why the rest was left undone. */
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
