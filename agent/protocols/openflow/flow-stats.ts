import { allTables, FlowFlag, Group, MultipartType, Port, Version } from "./constants.ts";
import type { Flow } from "./flow.ts";
import { type FlowFilter, filterText } from "./flow-mod.ts";
import { readInstructions } from "./instruction-wire.ts";
import { matchAll } from "./match.ts";
import { readMatch, writeMatch } from "./match-wire.ts";
import type { MultipartRequest } from "./multipart.ts";
import type { WireReader } from "./wire-reader.ts";

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

/** OFPMP_FLOW_STATS, called OFPMP_FLOW_DESC since 1.5 (OpenFlow 1.5.1, 7.3.5.2). */
export function flowsRequest(filter: FlowFilter = {}): MultipartRequest<InstalledFlow> {
  return {
    action: `list the flows "${filterText(filter)}"`,
    type: MultipartType.FLOW,
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
    entry: (reader, version) => (version >= Version.v15 ? readFlow15(reader) : readFlow13(reader)),
  };
}

function entryOf(reader: WireReader): WireReader {
  const length = reader.u16();
  if (length < 8) throw reader.malformed(`a flow says ${length} bytes, wanted more than its head`);
  return reader.part(length - 2, "a flow");
}

/** `struct ofp_flow_desc` (7.3.5.2). */
function readFlow15(reader: WireReader): InstalledFlow {
  const entry = entryOf(reader).skip(2);
  const table = entry.u8();
  const priority = entry.skip(1).u16();
  const [idleTimeout, hardTimeout, flags, importance] = [entry.u16(), entry.u16(), entry.u16(), entry.u16()];
  const cookie = entry.u64();
  const match = readMatch(entry);
  const counters = readOxs(entry);
  const head = { table, priority, cookie, match, idleTimeout, hardTimeout, importance, flags: flagsOf(flags) };
  return { flow: { ...head, ...readInstructions(entry) }, counters };
}

/** `struct ofp_flow_stats` of OpenFlow 1.3.5, A.3.5.2. */
function readFlow13(reader: WireReader): InstalledFlow {
  const entry = entryOf(reader);
  const table = entry.u8();
  const durationMs = entry.skip(1).u32() * 1000 + entry.u32() / 1e6;
  const priority = entry.u16();
  const [idleTimeout, hardTimeout, flags, importance] = [entry.u16(), entry.u16(), entry.u16(), entry.u16()];
  const cookie = entry.skip(2).u64();
  const counters = { durationMs, packets: counter(entry.u64()), bytes: counter(entry.u64()) };
  const match = readMatch(entry);
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
export function readOxs(reader: WireReader): FlowCounters {
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
