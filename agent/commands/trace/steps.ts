import { readCookie, type TableName, tableRoles, tables } from "../../datapath/ovs/pipeline/vocabulary.ts";
import type { Hop, Pass } from "./trace-text.ts";
import { decisionWords, matchWords, type PortName } from "./words.ts";

/** One table on the packet's way. */
export interface Step {
  readonly table: number;
  readonly name: string;
  /** What the table is for. */
  readonly role: string;
  /** Absent where no flow matched. */
  readonly flow?: {
    readonly priority: number;
    /** As ovs-ofctl writes it. */
    readonly match: string;
    readonly matchInWords: string;
    readonly round: number;
    readonly category: number;
  };
  readonly decided: readonly string[];
}

const names = new Map<number, TableName>(Object.entries(tables).map(([name, id]) => [id, name as TableName]));

/** A number where the table is none of ours. */
export const tableName = (table: number): string => names.get(table) ?? String(table);

export function stepsOf(passes: readonly Pass[], port: PortName): readonly Step[] {
  return passes.flatMap(({ hops }) => hops.map((hop) => stepOf(hop, port)));
}

function stepOf({ table, match, priority, cookie, lines }: Hop, port: PortName): Step {
  const { round, category } = readCookie(cookie);
  const name = names.get(table);
  const decided = decisionWords(lines, port);
  return {
    table,
    name: tableName(table),
    role: name === undefined ? "" : tableRoles[name],
    ...(priority === undefined
      ? {}
      : { flow: { priority, match, matchInWords: matchWords(match, port), round, category } }),
    decided,
  };
}
