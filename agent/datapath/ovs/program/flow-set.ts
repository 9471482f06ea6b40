import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Flow, flowText, type OpenFlowGroup } from "../../../protocols/openflow/mod.ts";
import { type Category, cookieOf } from "../pipeline/cookie.ts";

/**
 * Flows and groups that belong together, such as those of a pod, a peer or a service, and are added, changed and
 * removed as a whole.
 */
export interface FlowSet {
  readonly category: Category;
  /** Cookies are set when the flows are installed. */
  readonly flows: readonly Flow[];
  readonly groups?: readonly OpenFlowGroup[];
  /** The object number in the cookie, also of learned flows. */
  readonly object?: number;
  /** The key of one that it may not be in force without: where the switch refuses that, this is left out too. */
  readonly needs?: string;
}

/** Flow sets by their keys in the program; `undefined` takes one away. */
export type FlowSetChanges = ReadonlyMap<string, FlowSet | undefined>;

/**
 * The complete wanted content of the switch. It is installed by bundles, again after a restart of the switch, and flows
 * of earlier rounds are removed once everything is installed.
 */
export interface SwitchProgram {
  /** Number of this start of the agent, in the cookies of its flows; learned flows have 0. */
  readonly round: number;
  /**
   * Sets these in one bundle, so that no packet sees a partial change. While the switch cannot be reached the changes
   * are kept and the call fails; they are installed with the next connection.
   * @throws {CniError} 11 where the switch cannot be reached, 102 where it refuses
   */
  set(changes: FlowSetChanges): Promise<void>;
}

/** Whether the switch refuses it permanently. */
export const isRefusedFlowSet = (caught: unknown): caught is CniError =>
  caught instanceof CniError && caught.code !== CniCode.tryAgainLater;

/** A flow set with cookies set, its flows by their identity in the switch and its groups by their numbers. */
export interface KeyedFlowSet {
  readonly category: Category;
  readonly flows: ReadonlyMap<string, Flow>;
  readonly groups: ReadonlyMap<number, OpenFlowGroup>;
  readonly needs?: string;
}

/**
 * @throws {CniError} 102 if two of its flows are identical in table, priority and match, or two groups have one number
 */
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
  const { category, needs } = flowSet;
  return { category, flows, groups, ...(needs === undefined ? {} : { needs }) };
}

const doubled = (key: string, what: string): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot put "${key}" into the switch: two of its own have the place of ${what}`,
  );

/** A flow's identity in the switch: table, priority and match (OpenFlow 1.5.1, 5.2). */
export function placeOf({ table, priority, match }: Flow): string {
  let place = `${table} ${priority}`;
  for (const { field, value, mask } of match.fields) {
    place += ` ${field.rank}=${value.toString(16)}`;
    if (mask !== field.ones) place += `/${mask.toString(16)}`;
  }
  for (const { header, payload } of match.unknown) place += ` x${header}=${payload.toString()}`;
  return place;
}

export const messagesOf = ({ flows, groups }: KeyedFlowSet): number => flows.size + groups.size;
