import { allTables, FlowCommand, FlowFlag, Group, MessageType, noBuffer, Port, type Version } from "./constants.ts";
import type { Flow } from "./flow.ts";
import { flowText } from "./flow-text.ts";
import { writeInstructions } from "./instruction-wire.ts";
import { type Match, matchAll } from "./match.ts";
import { matchText } from "./match-text.ts";
import { writeMatch } from "./match-wire.ts";
import type { Request } from "./request.ts";
import { hex } from "./values.ts";
import type { WireWriter } from "./wire-writer.ts";

/** Which flows: all that match at least as narrowly, and whose cookie has these bits. */
export interface FlowFilter {
  /** Absent: all tables. */
  readonly table?: number;
  readonly match?: Match;
  readonly cookie?: { readonly value: bigint; readonly mask: bigint };
  /** That send to this port, or to this group. */
  readonly outPort?: number;
  readonly outGroup?: number;
}

interface FlowModFields {
  readonly command: FlowCommand;
  readonly flow: Flow;
  readonly cookieMask: bigint;
  readonly table: number;
  readonly outPort: number;
  readonly outGroup: number;
}

/** Adds a flow, in place of one with the same table, priority and match (OpenFlow 1.5.1, 7.3.4.2). */
export const addFlow = (flow: Flow): Request => flowMod("add", flow);

/** Gives all flows that match at least as narrowly these instructions. */
export const modifyFlows = (flow: Flow): Request => flowMod("modify", flow);

/** The one flow with this table, priority and match. */
export const modifyFlow = (flow: Flow): Request => flowMod("modifyStrict", flow);
export const deleteFlow = (flow: Flow): Request => flowMod("deleteStrict", flow);

/** All flows that the filter lets through. */
export function deleteFlows(filter: FlowFilter = {}): Request {
  const { table = allTables, match = matchAll, cookie } = filter;
  const shown = filterText(filter);
  return {
    action: `delete flows "${shown}"`,
    type: MessageType.FLOW_MOD,
    body: (writer, version) =>
      writeFlowMod(writer, version, {
        command: "delete",
        flow: { ...emptyFlow, match, cookie: cookie?.value ?? 0n },
        cookieMask: cookie?.mask ?? 0n,
        table,
        outPort: filter.outPort ?? Port.ANY,
        outGroup: filter.outGroup ?? Group.ANY,
      }),
  };
}

const emptyFlow: Flow = {
  table: 0,
  priority: 0,
  cookie: 0n,
  match: matchAll,
  idleTimeout: 0,
  hardTimeout: 0,
  importance: 0,
  flags: [],
  actions: [],
  clearActions: false,
  writeActions: [],
  metadata: undefined,
  gotoTable: undefined,
};

function flowMod(command: Exclude<FlowCommand, "delete">, flow: Flow): Request {
  return {
    get action() {
      return `${verbs[command]} flow "${flowText(flow)}"`;
    },
    type: MessageType.FLOW_MOD,
    body: (writer, version) => {
      const { table } = flow;
      // The cookie is for others to ask for; a strict command finds its flow without.
      writeFlowMod(writer, version, { command, flow, cookieMask: 0n, table, outPort: Port.ANY, outGroup: Group.ANY });
    },
  };
}

const verbs = { add: "add", modify: "modify", modifyStrict: "modify", deleteStrict: "delete" } as const;

/** `struct ofp_flow_mod` behind its header. */
function writeFlowMod(writer: WireWriter, version: Version, of: FlowModFields): void {
  const { flow } = of;
  writer.u64(flow.cookie).u64(of.cookieMask).u8(of.table).u8(FlowCommand[of.command]);
  writer.u16(flow.idleTimeout).u16(flow.hardTimeout).u16(flow.priority).u32(noBuffer);
  writer.u32(of.outPort).u32(of.outGroup).u16(flagBits(flow)).u16(flow.importance);
  writeMatch(writer, flow.match);
  if (of.command !== "delete" && of.command !== "deleteStrict") writeInstructions(writer, flow, version);
}

const flagBits = ({ flags }: Flow): number => flags.reduce((bits, flag) => bits | FlowFlag[flag], 0);

export function filterText({ table, match, cookie, outPort, outGroup }: FlowFilter): string {
  const parts = [
    cookie === undefined ? undefined : `cookie=${hex(cookie.value)}/${hex(cookie.mask)}`,
    table === undefined ? undefined : `table=${table}`,
    match === undefined ? undefined : matchText(match),
    outPort === undefined ? undefined : `out_port=${outPort}`,
    outGroup === undefined ? undefined : `out_group=${outGroup}`,
  ];
  return parts.filter((part) => part !== undefined && part !== "").join(",");
}
