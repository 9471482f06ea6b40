import { limits } from "../../shared/limits.ts";
import type { Entry, SavedAdapter, Thing } from "./record.ts";
import type { HostRunner } from "./runner.ts";
import { renderPipeline, type Statement } from "./script.ts";
import type { HostSettings } from "./settings.ts";
import { steps } from "./steps/mod.ts";
import { hostError, type Step } from "./steps/step.ts";
import { type TableName, Tables } from "./tables.ts";

/** Windows takes a command line of 32,767 characters, and a script costs it 8/3 of its own. */
const scriptChars = 8000;

/** Everything that the steps which the settings need look at, in one process. */
export function lookFor(
  run: HostRunner,
  settings: HostSettings,
  adapter: SavedAdapter | undefined,
  more: readonly TableName[] = [],
): Promise<Tables> {
  const names = steps.filter((step) => step.needed(settings, adapter)).flatMap((step) => step.tables);
  return Tables.list(run, "look at the node", [...names, ...more]);
}

/** Runs `statements` in as few processes as command lines allow. */
export async function act(run: HostRunner, action: string, statements: readonly Statement[]): Promise<void> {
  let batch: Statement[] = [];
  let chars = 0;
  for (const statement of statements) {
    const length = renderPipeline(statement).length;
    if (chars + length > scriptChars && batch.length > 0) {
      await run.run(action, batch);
      batch = [];
      chars = 0;
    }
    batch.push(statement);
    chars += length;
  }
  await run.run(action, batch);
}

/**
 * Looks until nothing is open any more. A change that Windows is in the middle of may look like a fault, so only
 * the last look's faults count.
 * @param open what is still missing, as a sentence's beginning; empty: all is well
 * @throws {CniError} 102 after the last look
 */
export async function readBack(
  run: HostRunner,
  action: string,
  look: () => Promise<Tables>,
  open: (tables: Tables) => string,
): Promise<Tables> {
  for (let looks = 1; ; looks++) {
    const tables = await look();
    const isLast = looks === limits.hostLooks;
    const is = isLast ? open(tables) : openOrFaulty(open, tables);
    if (is === "") return tables;
    if (isLast) throw hostError(action, `${is} after PowerShell said it was done`, "it to be seen on the node");
    await run.pause(limits.hostLookMs);
  }
}

function openOrFaulty(open: (tables: Tables) => string, tables: Tables): string {
  try {
    return open(tables);
  } catch (caught) {
    return String(caught);
  }
}

export type Undone =
  | { readonly did: "undone" | "was gone" }
  /** Nothing is known of these; they stay on record. */
  | { readonly did: "failed"; readonly caught: unknown };

/** Takes back what is on record, newest step first; `settle` hears of each entry once, as soon as it is known. */
export async function undo(
  run: HostRunner,
  entries: readonly Entry[],
  settle: (entries: readonly Entry[], undone: Undone) => void,
): Promise<void> {
  let failed = "";
  for (const step of steps.toReversed()) {
    let open = entries.filter((entry) => entry.step === step.name).reverse();
    if (open.length === 0) continue;
    try {
      if (step.names && failed !== "")
        throw hostError(`undo step "${step.name}"`, `step "${failed}" is not undone`, "it to be");
      await undoStep(run, step, open, (settled, undone) => {
        settle(settled, undone);
        open = open.filter((entry) => !settled.includes(entry));
      });
    } catch (caught) {
      failed ||= step.name;
      settle(open, { did: "failed", caught });
    }
  }
}

async function undoStep(
  run: HostRunner,
  step: Step,
  entries: readonly Entry[],
  settle: (entries: readonly Entry[], undone: Undone) => void,
): Promise<void> {
  const action = `undo step "${step.name}"`;
  const look = (): Promise<Tables> => Tables.list(run, action, step.tables);
  const tables = await look();
  const undoing = (entry: Entry, seen: Tables): readonly Statement[] => step.undo(entry.thing, entry.before, seen);
  const [still, gone] = [true, false].map((is) => entries.filter((entry) => undoing(entry, tables).length > 0 === is));
  settle(gone ?? [], { did: "was gone" });
  if (still === undefined || still.length === 0) return;
  await act(
    run,
    action,
    still.flatMap((entry) => undoing(entry, tables)),
  );
  await readBack(run, action, look, (seen) =>
    still
      .filter((entry) => undoing(entry, seen).length > 0)
      .map((entry) => `${step.describe(entry.thing)} is still there`)
      .join(", "),
  );
  settle(still, { did: "undone" });
}

export const describeEntry = ({ step: name, thing }: { readonly step: string; readonly thing: Thing }): string =>
  steps.find((step) => step.name === name)?.describe(thing) ?? JSON.stringify(thing);
