import { ReconcileLoop } from "../../../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../../../shared/log.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import {
  type Flow,
  flowText,
  groupText,
  OpenFlowClient,
  type OpenFlowGroup,
  type OpenFlowMeter,
  parseAddress,
} from "../../../protocols/openflow/mod.ts";
import { mismatch } from "../../linux/compare.ts";
import { type Category, isLearned, isOfTrace, readCookie } from "../pipeline/cookie.ts";
import { placeOf } from "./flow-set.ts";
import type { FlowSets } from "./flow-sets.ts";
import { metersToRepair } from "./meters.ts";

/** How a switch differs from its program, because of changes by others. */
export interface Drift {
  /** Flows that are missing or different. */
  readonly missing: readonly Flow[];
  /** Flows that do not belong to the program. */
  readonly foreign: readonly Flow[];
  /** Groups that are missing or have other buckets. */
  readonly groups: readonly OpenFlowGroup[];
  /** Numbers of groups that belong to no flow set. */
  readonly foreignGroups: readonly number[];
  /** The wanted meters in place of different ones. */
  readonly meters: readonly OpenFlowMeter[];
}

/** The content of a switch. */
export interface SwitchContents {
  readonly flows: readonly Flow[];
  readonly groups: readonly OpenFlowGroup[];
  readonly meters: readonly OpenFlowMeter[];
}

export function driftOf(flowSets: FlowSets, round: number, { flows, groups, meters }: SwitchContents): Drift {
  const missing = new Map([...flowSets.all.values()].flatMap((flowSet) => [...flowSet.flows]));
  const missingGroups = new Map([...flowSets.all.values()].flatMap((flowSet) => [...flowSet.groups]));
  const foreign: Flow[] = [];
  for (const flow of flows) {
    if (isLearned(flow.cookie) || (isOfTrace(flow.cookie) && flow.hardTimeout > 0)) continue;
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
  return { ...changed, meters: metersToRepair(meters) };
}

/** Some tables, or all but these with what else is in a switch. */
export type PartOfSwitch = { readonly tables: readonly number[] } | { readonly allBut: readonly number[] };

/** The differences there. */
export const driftIn = (part: PartOfSwitch, drift: Drift): Drift => {
  const isThere = ({ table }: Flow): boolean =>
    "tables" in part ? part.tables.includes(table) : !part.allBut.includes(table);
  const rest = "tables" in part ? { groups: [], foreignGroups: [], meters: [] } : drift;
  return { ...rest, missing: drift.missing.filter(isThere), foreign: drift.foreign.filter(isThere) };
};

/** Without what an earlier round has left of a category, which stays until that is complete. */
export const driftBeside = (spared: Category, drift: Drift): Drift => ({
  ...drift,
  foreign: drift.foreign.filter(({ cookie }) => readCookie(cookie).category !== spared),
  foreignGroups: [],
});

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

/** Flows of several flow sets exist once, with the cookie of one of them. */
const textOf = (flow: Flow): string => flowText({ ...flow, cookie: 0n, flags: [] });

export interface DriftLoopOptions {
  /** Compares the switch with what it should have, puts right what differs, and says what that was. */
  look(): Promise<readonly string[]>;
  readonly logger: Logger;
  readonly everyMs?: number;
}

/** The interval of checks without a notice: so long a pod may be without flows. */
const defaultEveryMs = 60_000;

/**
 * Checks the switch when triggered, and periodically: not every switch reports when others delete or change a flow, and
 * the pod behind it would have no network until the agent's next start.
 */
export function driftLoop({ look, logger, everyMs = defaultEveryMs }: DriftLoopOptions): ReconcileLoop {
  const reconcile = async (): Promise<undefined> => {
    const found = await look();
    if (found.length > 0) logger.warn("somebody else has changed the switch; it is as it should be again", { found });
  };
  return new ReconcileLoop({ what: "the switch", reconcile, logger, everyMs, isDamped: true });
}

/** Checks in the switch itself that it has these flows. @throws {CniError} 103 naming the first one missing */
export async function compareFlows(management: string, wanted: readonly Flow[]): Promise<void> {
  using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
  const answers = await Promise.all(wanted.map(({ table, match }) => client.flows({ table, match })));
  wanted.forEach((flow, i) => {
    const standing = answers[i] ?? [];
    if (standing.some((one) => textOf(one.flow) === textOf(flow))) return;
    throw mismatch(`the flow "${textOf(flow)}"`, "missing or another", "in the switch");
  });
}
