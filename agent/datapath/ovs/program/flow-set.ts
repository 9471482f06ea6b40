import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Flow, flowText, type OpenFlowGroup } from "../../../protocols/openflow/mod.ts";
import { type Category, cookieOf } from "../pipeline/cookie.ts";

/** What belongs together on the switch: flows of one pod, one peer, one service; comes, changes and goes as a whole. */
export interface FlowSet {
  readonly category: Category;
  /** Their cookies are set when they are put in. */
  readonly flows: readonly Flow[];
  readonly groups?: readonly OpenFlowGroup[];
  /** In the cookie; also of what its flows learn. */
  readonly object?: number;
}

/** Flow sets by their keys in the program; `undefined` takes one away. */
export type FlowSetChanges = ReadonlyMap<string, FlowSet | undefined>;

/**
 * What the switch is to have, whole. It is put in by bundles, again after the switch has restarted, and flows of
 * earlier rounds go once all is there.
 */
export interface SwitchProgram {
  /** Number of this start of the agent, in the cookies of its flows; what flows learn has 0. */
  readonly round: number;
  /**
   * Sets these, all in one bundle, so that no packet sees half.
   * While the switch cannot be reached they are kept and the call fails; they go in with the next connection.
   * @throws {CniError} 11 where the switch cannot be reached, 102 where it refuses
   */
  set(changes: FlowSetChanges): Promise<void>;
}

/** Whether the switch will have none of it, rather than not now. */
export const isRefusal = (caught: unknown): caught is CniError =>
  caught instanceof CniError && caught.code !== CniCode.tryAgainLater;

/** A flow set with its flows by their places in the switch and its groups by their numbers, cookies set. */
export interface KeyedFlowSet {
  readonly category: Category;
  readonly flows: ReadonlyMap<string, Flow>;
  readonly groups: ReadonlyMap<number, OpenFlowGroup>;
}

/** @throws {CniError} 102 where two of its flows have one place, or two groups one number */
export function keyFlowSet(key: string, flowSet: FlowSet, round: number, object: number): KeyedFlowSet {
  const cookie = cookieOf(round, flowSet.category, flowSet.object ?? object);
  const flows = new Map<string, Flow>();
  for (const flow of flowSet.flows) {
    const place = placeOf(flow);
    if (flows.has(place)) throw doubled(key, `flow "${flowText(flow)}"`);
    flows.set(place, { ...flow, cookie });
  }
  const groups = new Map<number, OpenFlowGroup>();
  for (const group of flowSet.groups ?? []) {
    if (groups.has(group.id)) throw doubled(key, `group ${group.id}`);
    groups.set(group.id, group);
  }
  return { category: flowSet.category, flows, groups };
}

const doubled = (key: string, what: string): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot put "${key}" into the switch: two of its own have the place of ${what}, wanted a place for each`,
  );

/** What tells a flow from every other one: table, priority and match (OpenFlow 1.5.1, 5.2). */
export function placeOf({ table, priority, match }: Flow): string {
  let place = `${table} ${priority}`;
  for (const { field, value, mask } of match.fields) {
    place += ` ${field.rank}=${value.toString(36)}`;
    if (mask !== field.ones) place += `/${mask.toString(36)}`;
  }
  for (const { header, payload } of match.unknown) place += ` x${header}=${payload.toString()}`;
  return place;
}

export const messagesOf = ({ flows, groups }: KeyedFlowSet): number => flows.size + groups.size;
