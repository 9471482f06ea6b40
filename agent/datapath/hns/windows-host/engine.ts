import { reasonOf } from "../../../../shared/reason.ts";
import type { HostRunner } from "./powershell.ts";
import type { Entry, SavedAdapter, Thing } from "./record.ts";
import { renderPipeline, type Statement } from "./script.ts";
import type { HostSettings } from "./settings.ts";
import { steps } from "./steps/mod.ts";
import { hostError, type Step } from "./steps/step.ts";
import { type TableName, Tables } from "./tables.ts";

/** The pause between two checks of something that takes Windows a moment. */
export const hostLookMs = 500;
const hostLooks = 10;
/**
 * Windows moves an adapter's address to the switch's virtual adapter within six seconds, usually; a check takes a
 * second or more.
 */
export const addressMoveLooks = 10;
/** Windows takes a command line of 32,767 characters, and a script costs it 8/3 of its own; listings take 2000 of those. */
const scriptChars = 6000;

/** Reads the node's state; `first` is run before, in the same process. */
export type Look = (first?: readonly Statement[]) => Promise<Tables>;

export const lookAt =
  (run: HostRunner, action: string, names: readonly TableName[]): Look =>
  (first) =>
    Tables.list(run, action, names, first);

/** All listings that the needed steps read. */
export const tablesFor = (
  chosen: readonly Step[],
  settings: HostSettings,
  adapter: SavedAdapter | undefined,
): readonly TableName[] => chosen.filter((step) => step.needed(settings, adapter)).flatMap((step) => step.tables);

/**
 * Runs `statements`, in as few processes as command lines allow, then reads the state until nothing is missing. Changes
 * in progress may look like faults, so only those of the last reading count.
 * @param open what is still missing, as a sentence's beginning; empty: all is well
 * @throws {CniError} 102 if PowerShell reports an error, or something is missing at the end
 */
export async function actAndReadBack(
  run: HostRunner,
  action: string,
  statements: readonly Statement[],
  look: Look,
  open: (tables: Tables) => string,
): Promise<Tables> {
  const batches = inBatches(statements);
  for (const batch of batches.slice(0, -1)) await run.run(action, batch);
  let tables = await look(batches.at(-1));
  for (let looks = 1; ; looks++) {
    const isLast = looks === hostLooks;
    const is = isLast ? open(tables) : openOrFaulty(open, tables);
    if (is === "") return tables;
    if (isLast) throw hostError(action, `${is} after PowerShell said it was done`);
    await run.pause(hostLookMs);
    tables = await look();
  }
}

function inBatches(statements: readonly Statement[]): readonly (readonly Statement[])[] {
  const batches: Statement[][] = [];
  let chars = Number.POSITIVE_INFINITY;
  for (const statement of statements) {
    const { length } = renderPipeline(statement);
    if (chars + length > scriptChars) {
      batches.push([]);
      chars = 0;
    }
    batches.at(-1)?.push(statement);
    chars += length;
  }
  return batches;
}

function openOrFaulty(open: (tables: Tables) => string, tables: Tables): string {
  try {
    return open(tables);
  } catch (caught) {
    return reasonOf(caught);
  }
}

export type Undone =
  | { readonly did: "undone" | "was gone" }
  /** Their state is unknown, so they stay on record. */
  | { readonly did: "failed"; readonly caught: unknown };

/** Undoes what is on record, newest step first; `settle` is called once for each entry. */
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
      if (step.names && failed !== "") throw hostError(`undo step "${step.name}"`, `step "${failed}" is not undone`);
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
  const look = lookAt(run, action, step.tables);
  const tables = await look();
  const undoing = (entry: Entry, seen: Tables): readonly Statement[] => step.undo(entry.thing, entry.before, seen);
  const [still, gone] = [true, false].map((is) => entries.filter((entry) => undoing(entry, tables).length > 0 === is));
  settle(gone ?? [], { did: "was gone" });
  if (still === undefined || still.length === 0) return;
  const statements = still.flatMap((entry) => undoing(entry, tables));
  await actAndReadBack(run, action, statements, look, (seen) =>
    still
      .filter((entry) => undoing(entry, seen).length > 0)
      .map((entry) => `${step.describe(entry.thing)} is still there`)
      .join(", "),
  );
  settle(still, { did: "undone" });
}

/** Whether this version has the step. */
export const isKnown = ({ step: name }: Entry): boolean => steps.some((step) => step.name === name);

export const describeEntry = ({ step: name, thing }: { readonly step: string; readonly thing: Thing }): string =>
  steps.find((step) => step.name === name)?.describe(thing) ?? JSON.stringify(thing);
