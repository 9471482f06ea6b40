import { allTables, Group, headerBytes, MessageType, MultipartType, Port } from "./constants.ts";
import { matchAll } from "./match.ts";
import { writeMatch } from "./match-wire.ts";
import type { MultipartRequest } from "./request.ts";
import type { WireReader } from "./wire-reader.ts";

/** A flow has changed, or the switch could not say which ones: `paused`, then `resumed` behind those that it has still. */
export interface FlowUpdate {
  readonly t: "flow-update";
  /** `own`: by a request of this connection, which the switch says in short. */
  readonly event: "initial" | "added" | "removed" | "modified" | "own" | "paused" | "resumed" | "other";
  /** Where it is another's. */
  readonly cookie: bigint;
}

/** Somebody else has changed a group or a meter. */
export interface RequestForwarded {
  readonly t: "request-forwarded";
  readonly changed: "group" | "meter" | "other";
}

const Watch = { ADD: 1 << 1, REMOVED: 1 << 2, MODIFY: 1 << 3 } as const;
const addMonitor = 0;
const events = ["initial", "added", "removed", "modified", "own", "paused", "resumed"] as const;

/**
 * OFPMP_FLOW_MONITOR (OpenFlow 1.5.1, 7.3.5.17): from now on the switch tells of each flow that comes,
 * changes and goes, of this connection's own doing in short. The answer is empty; what it tells are events. Open vSwitch
 * knows it from 3.0 on.
 */
export function watchFlowsRequest(): MultipartRequest<undefined> {
  return {
    action: "watch the flows",
    type: MultipartType.FLOW_MONITOR,
    body: (writer) => {
      writer.u32(1).u32(Port.ANY).u32(Group.ANY);
      writer
        .u16(Watch.ADD | Watch.REMOVED | Watch.MODIFY)
        .u8(allTables)
        .u8(addMonitor);
      writeMatch(writer, matchAll);
    },
    entry: (reader) => {
      readUpdate(reader);
      return undefined;
    },
  };
}

/** What a multipart reply that nobody has asked for tells of flows; nothing where it is another. @throws {MalformedMessage} */
export function* readFlowUpdates(reader: WireReader): Generator<FlowUpdate> {
  const type = reader.u16();
  reader.skip(6);
  if (type !== MultipartType.FLOW_MONITOR) return;
  while (reader.left > 0) yield readUpdate(reader);
}

/**
 * `struct ofp_flow_update_header` and what follows it. Match and instructions are not read, because the switch is
 * compared anyway.
 */
function readUpdate(reader: WireReader): FlowUpdate {
  const length = reader.u16();
  if (length < 8) throw reader.malformed(`a change of a flow says ${length} bytes, wanted 8 at least`);
  const entry = reader.part(length - 2, "a change of a flow");
  const event = events[entry.u16()] ?? "other";
  const isFull = event === "initial" || event === "added" || event === "removed" || event === "modified";
  return { t: "flow-update", event, cookie: isFull ? entry.skip(12).u64() : 0n };
}

/** OFPT_REQUESTFORWARD (7.4.5): another's request, whole. @throws {MalformedMessage} */
export function readRequestForwarded(reader: WireReader): RequestForwarded {
  const type = reader.ahead(headerBytes, "a request of somebody else").skip(1).u8();
  const isMeter = type === MessageType.METER_MOD;
  return { t: "request-forwarded", changed: isMeter ? "meter" : type === MessageType.GROUP_MOD ? "group" : "other" };
}
