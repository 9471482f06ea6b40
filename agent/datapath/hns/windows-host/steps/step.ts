import { CniCode, CniError } from "../../../../../shared/errors.ts";
import type { SavedAdapter, Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import type { HostSettings } from "../settings.ts";
import type { TableName, Tables } from "../tables.ts";

/** How a thing stands. Whoever else has put something in its place is an error of `judge`, never a takeover. */
export type Verdict =
  | { readonly t: "there" }
  /** `before`: what stands in its place, and comes back when the step is undone. */
  | { readonly t: "missing"; readonly before?: string };

/** What a step may know besides the tables. */
export interface StepView {
  readonly settings: HostSettings;
  readonly tables: Tables;
  /** The node's adapter before the HNS network took it; absent where the network was made by somebody else. */
  readonly adapter: SavedAdapter | undefined;
  /** Whether an earlier run has changed something in this step. */
  readonly begun: boolean;
}

/**
 * One kind of thing on the node. A step only says: the engine runs what it says, looks again, and believes what
 * it sees. None of these functions does anything.
 */
export interface Step {
  readonly name: string;
  /** Completes "Cannot …". */
  readonly action: string;
  readonly tables: readonly TableName[];
  /** Whether the settings ask for it at all; what is not needed is not listed, and its module need not be there. */
  needed(settings: HostSettings, adapter: SavedAdapter | undefined): boolean;
  wanted(view: StepView): readonly Thing[];
  /** @throws {CniError} 102 where somebody else's is in the way, or what it stands on is missing */
  judge(thing: Thing, tables: Tables): Verdict;
  make(thing: Thing, tables: Tables): readonly Statement[];
  /** Its things follow other nodes' records: one that Windows refuses, or that somebody else has, costs the others nothing. */
  readonly apart?: true;
  /** Others find their things by what this one has made: while one of those could not be undone, this one is not. */
  readonly names?: true;
  /** Empty where nothing of ours is there any more. */
  undo(thing: Thing, before: string | undefined, tables: Tables): readonly Statement[];
  describe(thing: Thing): string;
}

export const there: Verdict = { t: "there" };
export const missing = (before?: string): Verdict => ({ t: "missing", ...(before === undefined ? {} : { before }) });

/** A field of a thing that this step has made itself. */
export function field(thing: Thing, name: string): string {
  const value = thing[name];
  if (value === undefined) throw hostError("read the record", `"${name}" is missing in ${JSON.stringify(thing)}`);
  return value;
}

export const hostError = (action: string, is: string, wanted?: string): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot ${action}: ${is}${wanted === undefined ? "" : `, wanted ${wanted}`}`);
