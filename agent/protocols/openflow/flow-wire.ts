import type { Action } from "./action.ts";
import { readActions } from "./action-reader.ts";
import { writeActions } from "./action-writer.ts";
import { allTables, FlowCommand, FlowFlag, Group, MessageType, MultipartType, noBuffer, Port } from "./constants.ts";
import { type Flow, type Instructions, ordinary } from "./flow.ts";
import { flowText } from "./flow-text.ts";
import { type Match, matchAll } from "./match.ts";
import { matchText } from "./match-text.ts";
import { readMatch, writeMatch } from "./match-wire.ts";
import type { MultipartRequest, Request } from "./request.ts";
import { hex } from "./values.ts";
import type { WireReader } from "./wire-reader.ts";
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

/** The one flow with this table, priority and match. */
export const deleteFlow = (flow: Flow): Request => flowMod("deleteStrict", flow);

/** All flows that the filter lets through. */
export function deleteFlows(filter: FlowFilter = {}): Request {
  const { table = allTables, match = matchAll, cookie } = filter;
  const shown = filterText(filter);
  return {
    action: `delete flows "${shown}"`,
    type: MessageType.FLOW_MOD,
    body: (writer) =>
      writeFlowMod(writer, {
        command: "delete",
        flow: { ...ordinary, priority: 0, match, cookie: cookie?.value ?? 0n },
        cookieMask: cookie?.mask ?? 0n,
        table,
        outPort: filter.outPort ?? Port.ANY,
        outGroup: filter.outGroup ?? Group.ANY,
      }),
  };
}

export function flowMod(command: Exclude<FlowCommand, "delete">, flow: Flow): Request {
  return {
    get action() {
      return `${verbs[command]} flow "${flowText(flow)}"`;
    },
    type: MessageType.FLOW_MOD,
    body: (writer) => {
      const { table } = flow;
      // The cookie is for others to ask for; a strict command finds its flow without.
      writeFlowMod(writer, { command, flow, cookieMask: 0n, table, outPort: Port.ANY, outGroup: Group.ANY });
    },
  };
}

const verbs = { add: "add", modify: "modify", modifyStrict: "modify", deleteStrict: "delete" } as const;

/** `struct ofp_flow_mod` behind its header. */
function writeFlowMod(writer: WireWriter, of: FlowModFields): void {
  const { flow } = of;
  writer.u64(flow.cookie).u64(of.cookieMask).u8(of.table).u8(FlowCommand[of.command]);
  writer.u16(flow.idleTimeout).u16(flow.hardTimeout).u16(flow.priority).u32(noBuffer);
  writer.u32(of.outPort).u32(of.outGroup).u16(flagBits(flow)).u16(flow.importance);
  writeMatch(writer, flow.match);
  if (of.command !== "delete" && of.command !== "deleteStrict") writeInstructions(writer, flow);
}

const flagBits = ({ flags }: Flow): number => flags.reduce((bits, flag) => bits | FlowFlag[flag], 0);

function filterText({ table, match, cookie, outPort, outGroup }: FlowFilter): string {
  const parts = [
    cookie === undefined ? undefined : `cookie=${hex(cookie.value)}/${hex(cookie.mask)}`,
    table === undefined ? undefined : `table=${table}`,
    match === undefined ? undefined : matchText(match),
    outPort === undefined ? undefined : `out_port=${outPort}`,
    outGroup === undefined ? undefined : `out_group=${outGroup}`,
  ];
  return parts.filter((part) => part !== undefined && part !== "").join(",");
}

/** OFPIT_* (OpenFlow 1.5.1, 7.2.5). */
const InstructionType = {
  GOTO_TABLE: 1,
  WRITE_METADATA: 2,
  WRITE_ACTIONS: 3,
  APPLY_ACTIONS: 4,
  CLEAR_ACTIONS: 5,
} as const;

function writeInstructions(writer: WireWriter, of: Instructions): void {
  if (of.actions.length > 0) withActions(writer, InstructionType.APPLY_ACTIONS, of.actions);
  if (of.clearActions) withActions(writer, InstructionType.CLEAR_ACTIONS, []);
  if (of.writeActions.length > 0) withActions(writer, InstructionType.WRITE_ACTIONS, of.writeActions);
  if (of.metadata !== undefined) {
    writer.u16(InstructionType.WRITE_METADATA).u16(24).zeros(4).u64(of.metadata.value).u64(of.metadata.mask);
  }
  if (of.gotoTable !== undefined) writer.u16(InstructionType.GOTO_TABLE).u16(8).u8(of.gotoTable).zeros(3);
}

function withActions(writer: WireWriter, type: number, actions: readonly Action[]): void {
  const start = writer.length;
  writer.u16(type).u16(0).zeros(4);
  writeActions(writer, actions);
  writer.setU16(start + 2, writer.length - start);
}

/** Instructions to the end of `reader`. @throws {MalformedMessage} where one is not known, or broken */
export function readInstructions(reader: WireReader): Instructions {
  const found = {
    actions: [] as readonly Action[],
    clearActions: false,
    writeActions: [] as readonly Action[],
    metadata: undefined as Instructions["metadata"],
    gotoTable: undefined as number | undefined,
  };
  while (reader.left > 0) {
    const type = reader.u16();
    const length = reader.u16();
    if (length < 8) throw reader.malformed(`an instruction says ${length} bytes, wanted 8 at least`);
    const body = reader.part(length - 4, "an instruction");
    if (type === InstructionType.APPLY_ACTIONS) found.actions = readActions(body.skip(4));
    else if (type === InstructionType.CLEAR_ACTIONS) found.clearActions = true;
    else if (type === InstructionType.WRITE_ACTIONS) found.writeActions = readActions(body.skip(4));
    else if (type === InstructionType.WRITE_METADATA) found.metadata = readMetadata(body.skip(4));
    else if (type === InstructionType.GOTO_TABLE) found.gotoTable = body.u8();
    else throw reader.malformed(`an instruction has type ${type}, which is not known`);
  }
  return found;
}

function readMetadata(body: WireReader): { value: bigint; mask: bigint } {
  return { value: body.u64(), mask: body.u64() };
}

/** What a flow has done so far; what the switch does not count is `undefined`. */
export interface FlowCounters {
  readonly durationMs: number;
  readonly packets: bigint | undefined;
  readonly bytes: bigint | undefined;
}

export interface InstalledFlow {
  readonly flow: Flow;
  readonly counters: FlowCounters;
}

/** OFPMP_FLOW_DESC (OpenFlow 1.5.1, 7.3.5.2). */
export function flowsRequest(filter: FlowFilter = {}): MultipartRequest<InstalledFlow> {
  return {
    action: `list the flows "${filterText(filter)}"`,
    type: MultipartType.FLOW_DESC,
    body: (writer) => {
      writer
        .u8(filter.table ?? allTables)
        .zeros(3)
        .u32(filter.outPort ?? Port.ANY)
        .u32(filter.outGroup ?? Group.ANY);
      writer
        .zeros(4)
        .u64(filter.cookie?.value ?? 0n)
        .u64(filter.cookie?.mask ?? 0n);
      writeMatch(writer, filter.match ?? matchAll);
    },
    entry: readFlow,
  };
}

/** `struct ofp_flow_desc` (7.3.5.2). */
function readFlow(reader: WireReader): InstalledFlow {
  const length = reader.u16();
  if (length < 8) throw reader.malformed(`a flow says ${length} bytes, wanted more than its head`);
  const entry = reader.part(length - 2, "a flow").skip(2);
  const table = entry.u8();
  const priority = entry.skip(1).u16();
  const [idleTimeout, hardTimeout, flags, importance] = [entry.u16(), entry.u16(), entry.u16(), entry.u16()];
  const cookie = entry.u64();
  const match = readMatch(entry);
  const counters = readOxs(entry);
  const head = { table, priority, cookie, match, idleTimeout, hardTimeout, importance, flags: flagsOf(flags) };
  return { flow: { ...head, ...readInstructions(entry) }, counters };
}

/** All ones where it is not counted. */
const counter = (value: bigint): bigint | undefined => (value === 0xffff_ffff_ffff_ffffn ? undefined : value);

const flagsOf = (bits: number): readonly FlowFlag[] =>
  (Object.keys(FlowFlag) as FlowFlag[]).filter((flag) => (bits & FlowFlag[flag]) !== 0);

/** OXSTC_OPENFLOW_BASIC and the fields of it (7.2.4.4). */
const oxsClass = 0x8002;
const Oxs = { DURATION: 0, PACKET_COUNT: 4, BYTE_COUNT: 5 } as const;

/** `struct ofp_stats` with its padding. @throws {MalformedMessage} */
function readOxs(reader: WireReader): FlowCounters {
  reader.skip(2);
  const length = reader.u16();
  if (length < 4) throw reader.malformed(`the counters say ${length} bytes, wanted 4 at least`);
  const part = reader.part(length - 4, "the counters of a flow");
  reader.skipPadding(length);
  let durationMs = 0;
  let packets: bigint | undefined;
  let bytes: bigint | undefined;
  while (part.left > 0) {
    const header = part.u32();
    const value = part.part(header & 0xff);
    if (header >>> 16 !== oxsClass) continue;
    const code = (header >>> 9) & 0x7f;
    if (code === Oxs.DURATION) durationMs = value.u32() * 1000 + value.u32() / 1e6;
    else if (code === Oxs.PACKET_COUNT) packets = counter(value.u64());
    else if (code === Oxs.BYTE_COUNT) bytes = counter(value.u64());
  }
  return { durationMs, packets, bytes };
}
