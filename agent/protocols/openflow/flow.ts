import type { Action } from "./action.ts";
import { defaultPriority, type FlowFlag } from "./constants.ts";
import { checkActions } from "./flow-check.ts";
import { type Match, matchAll } from "./match.ts";
import { InvalidFlow } from "./openflow-error.ts";

/** What a flow does, in the order in which the switch does it (OpenFlow 1.5.1, 5.5). */
export interface Instructions {
  /** Done at once, one after the other. */
  readonly actions: readonly Action[];
  /** Empties the action set, which is carried out when no table follows. */
  readonly clearActions: boolean;
  /** Put into the action set. */
  readonly writeActions: readonly Action[];
  readonly metadata: { readonly value: bigint; readonly mask: bigint } | undefined;
  readonly gotoTable: number | undefined;
}

/** One flow of a table. Timeouts in seconds, 0 none. */
export interface Flow extends Instructions {
  readonly table: number;
  readonly priority: number;
  /** 64 bits that mean nothing to the switch. */
  readonly cookie: bigint;
  readonly match: Match;
  readonly idleTimeout: number;
  readonly hardTimeout: number;
  readonly importance: number;
  readonly flags: readonly FlowFlag[];
}

const none: Instructions = {
  actions: [],
  clearActions: false,
  writeActions: [],
  metadata: undefined,
  gotoTable: undefined,
};

const ordinary: Flow = {
  ...none,
  table: 0,
  priority: defaultPriority,
  cookie: 0n,
  match: matchAll,
  idleTimeout: 0,
  hardTimeout: 0,
  importance: 0,
  flags: [],
};

/**
 * Makes a flow of what is given, the rest as ovs-ofctl has it; no action drops.
 * @throws {InvalidFlow} where a number is out of its range, or an action needs what the match does not say
 */
export function flow(given: Partial<Flow>): Flow {
  const made: Flow = { ...ordinary, ...given };
  const what = `a flow of table ${made.table}`;
  const within = (name: string, value: number, most: number): void => {
    if (!Number.isInteger(value) || value < 0 || value > most) {
      throw new InvalidFlow(what, `${name} is ${value}, wanted 0 to ${most}`);
    }
  };
  within("table", made.table, 254);
  within("priority", made.priority, 0xffff);
  within("idleTimeout", made.idleTimeout, 0xffff);
  within("hardTimeout", made.hardTimeout, 0xffff);
  within("importance", made.importance, 0xffff);
  if (made.cookie < 0n || made.cookie > 0xffff_ffff_ffff_fffen) {
    throw new InvalidFlow(what, `cookie is ${made.cookie}, wanted 64 bits, not all of them ones`);
  }
  if (made.gotoTable !== undefined && made.gotoTable <= made.table) {
    throw new InvalidFlow(what, `it goes to table ${made.gotoTable}, wanted a later one; "resubmit" goes back`);
  }
  checkActions(made.actions, made.match, what);
  checkActions(made.writeActions, made.match, what);
  return made;
}
