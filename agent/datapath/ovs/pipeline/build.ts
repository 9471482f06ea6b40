import { type Action, type Flow, flow, load, type MatchBuilder } from "../../../protocols/openflow/mod.ts";
import { registers } from "./registers.ts";
import { type TableName, tables } from "./tables.ts";

/**
 * Antrea's priorities. `guard` drops what only a few may send, below the flows that allow those; `outside` is for
 * packets that no pod, node or service of the cluster has matched; `answer` is for answers, which no rule is looked up
 * for; `untracked` comes before all that goes by a packet's connection.
 */
export const Priority = {
  miss: 0,
  outside: 180,
  low: 190,
  normal: 200,
  answer: 202,
  guard: 205,
  high: 210,
  untracked: 215,
} as const;

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

/** Sets the output port; later tables may still drop the packet. */
export const sendTo = (ofport: number): readonly Action[] => [
  load(registers.outputPort, ofport),
  load(registers.output, 1),
];
