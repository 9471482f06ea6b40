import { CniCode, CniError } from "../../../../../shared/errors.ts";
import type { SavedAdapter, Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import type { HostSettings } from "../settings.ts";
import type { TableName, Tables } from "../tables.ts";

/** The state of an object. If somebody else's is in its place, `judge` throws; it is never taken over. */
export type Verdict =
  | { readonly t: "there" }
  /** `before`: the value in its place, which is restored when the step is undone. */
  | { readonly t: "missing"; readonly before?: string };

/** What a step knows besides the tables. */
export interface StepView {
  readonly settings: HostSettings;
  readonly tables: Tables;
  /** The node's adapter before the HNS network took it; absent where the network was made by somebody else. */
  readonly adapter: SavedAdapter | undefined;
  /** Whether an earlier run has changed something in this step. */
  readonly begun: boolean;
}

/**
 * One kind of object on the node. A step only describes; the engine runs its statements and verifies the result. None
 * of these functions has an effect.
 */
export interface Step {
  readonly name: string;
  /** Completes "Cannot …". */
  readonly action: string;
  readonly tables: readonly TableName[];
  /** Whether the settings need it; otherwise its tables are not listed, and its module need not exist. */
  needed(settings: HostSettings, adapter: SavedAdapter | undefined): boolean;
  wanted(view: StepView): readonly Thing[];
  /** @throws {CniError} 102 where somebody else's is in the way, or a prerequisite is missing */
  judge(thing: Thing, tables: Tables): Verdict;
  make(thing: Thing, tables: Tables): readonly Statement[];
  /**
   * Its objects follow other nodes' records: one that is refused, or belongs to somebody else, does not stop the
   * others.
   */
  readonly apart?: true;
  /** Other steps find their objects by this one's names, so it is only undone after those. */
  readonly names?: true;
  /** Empty if nothing of ours is left. */
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
