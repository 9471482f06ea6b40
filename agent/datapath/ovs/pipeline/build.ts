import { type Action, type Flow, flow, load, type MatchBuilder } from "../../../protocols/openflow/mod.ts";
import { registers } from "./registers.ts";
import { type TableName, tables } from "./tables.ts";

/**
 * As the reference system has them. `guard` refuses what only a few may send, and yields to what allows those; `outside`
 * is for what neither a pod nor a node nor a service of the cluster has taken.
 */
export const Priority = { miss: 0, outside: 180, low: 190, normal: 200, guard: 205, high: 210 } as const;

/** One flow. Without actions and without a next table it drops. */
export function step(
  table: TableName,
  priority: number,
  matched: MatchBuilder,
  actions: readonly Action[],
  next?: TableName,
): Flow {
  return flow({
    table: tables[table],
    priority,
    match: matched.build(),
    actions,
    gotoTable: next === undefined ? undefined : tables[next],
  });
}

/** To the port, once the tables behind have agreed. */
export const sendTo = (ofport: number): readonly Action[] => [
  load(registers.outputPort, ofport),
  load(registers.output, 1),
];
