import {
  type Flow,
  flowText,
  groupText,
  type OpenFlowGroup,
  type OpenFlowMeter,
} from "../../../protocols/openflow/mod.ts";
import { isLearned, readCookie } from "../pipeline/cookie.ts";
import { setRight } from "./meters.ts";
import type { Parts } from "./parts.ts";
import { placeOf } from "./placed-part.ts";

/** How a switch differs from its program: somebody else has been at work on it. */
export interface Drift {
  /** Flows that are not there, or are others in their place. */
  readonly missing: readonly Flow[];
  /** Flows that nothing of the program is in the place of. */
  readonly foreign: readonly Flow[];
  /** That are not there, or have other buckets. */
  readonly groups: readonly OpenFlowGroup[];
  /** Numbers of those that no part has. */
  readonly foreignGroups: readonly number[];
  /** As they should be, of those that are others. */
  readonly meters: readonly OpenFlowMeter[];
}

/** What a switch has. */
export interface Standing {
  readonly flows: readonly Flow[];
  readonly groups: readonly OpenFlowGroup[];
  readonly meters: readonly OpenFlowMeter[];
}

export function driftOf(parts: Parts, round: number, { flows, groups, meters }: Standing): Drift {
  const missing = new Map([...parts.all.values()].flatMap((part) => [...part.flows]));
  const missingGroups = new Map([...parts.all.values()].flatMap((part) => [...part.groups]));
  const foreign: Flow[] = [];
  for (const flow of flows) {
    if (isLearned(flow.cookie)) continue;
    const place = placeOf(flow);
    const wanted = missing.get(place);
    if (wanted === undefined) foreign.push(flow);
    else if (readCookie(flow.cookie).round === round && textOf(flow) === textOf(wanted)) missing.delete(place);
  }
  const foreignGroups: number[] = [];
  for (const group of groups) {
    const wanted = missingGroups.get(group.id);
    if (wanted === undefined) foreignGroups.push(group.id);
    else if (groupText(wanted) === groupText(group)) missingGroups.delete(group.id);
  }
  const changed = { missing: [...missing.values()], foreign, groups: [...missingGroups.values()], foreignGroups };
  return { ...changed, meters: setRight(meters) };
}

/** For people. */
export function driftText({ missing, foreign, groups, foreignGroups, meters }: Drift): readonly string[] {
  const [lost] = missing;
  const [strange] = foreign;
  return [
    ...(lost === undefined ? [] : [`the switch lacks ${count(missing, "flow")}, the first "${flowText(lost)}"`]),
    ...(strange === undefined
      ? []
      : [`the switch has ${count(foreign, "flow")} of somebody else, the first "${flowText(strange)}"`]),
    ...(groups.length === 0 ? [] : [`the switch lacks ${count(groups, "group")}, the first ${groups[0]?.id}`]),
    ...(foreignGroups.length === 0
      ? []
      : [`the switch has ${count(foreignGroups, "group")} of somebody else, the first ${foreignGroups[0]}`]),
    ...(meters.length === 0
      ? []
      : [`the switch has another rate in ${count(meters, "meter")}, the first ${meters[0]?.id}`]),
  ];
}

const count = (all: readonly unknown[], what: string): string => `${all.length} ${what}${all.length === 1 ? "" : "s"}`;

/** Flows that several parts share are there once, with the cookie of one of them. */
const textOf = (flow: Flow): string => flowText({ ...flow, cookie: 0n, flags: [] });
