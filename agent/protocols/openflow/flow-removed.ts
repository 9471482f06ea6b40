import { Version } from "./constants.ts";
import { type FlowCounters, readOxs } from "./flow-stats.ts";
import type { Match } from "./match.ts";
import { readMatch } from "./match-wire.ts";
import type { WireReader } from "./wire-reader.ts";

/** A flow with the flag send_flow_rem has gone. */
export interface FlowRemoved {
  readonly t: "flow-removed";
  readonly table: number;
  readonly priority: number;
  readonly cookie: bigint;
  readonly match: Match;
  readonly reason: "idle_timeout" | "hard_timeout" | "delete" | "group_delete" | "meter_delete" | "eviction" | "other";
  readonly counters: FlowCounters;
}

const reasons = ["idle_timeout", "hard_timeout", "delete", "group_delete", "meter_delete", "eviction"] as const;

/** OFPT_FLOW_REMOVED (OpenFlow 1.5.1, 7.4.2; 1.3.5, A.4.2). @throws {MalformedMessage} */
export function readFlowRemoved(reader: WireReader, version: Version): FlowRemoved {
  if (version >= Version.v15) {
    const [table, reason, priority] = [reader.u8(), reader.u8(), reader.u16()];
    const cookie = reader.skip(4).u64();
    const match = readMatch(reader);
    return { ...of(reason), table, priority, cookie, match, counters: readOxs(reader) };
  }
  const cookie = reader.u64();
  const [priority, reason, table] = [reader.u16(), reader.u8(), reader.u8()];
  const durationMs = reader.u32() * 1000 + reader.u32() / 1e6;
  const counters = { durationMs, packets: reader.skip(4).u64(), bytes: reader.u64() };
  return { ...of(reason), table, priority, cookie, match: readMatch(reader), counters };
}

const of = (reason: number): Pick<FlowRemoved, "t" | "reason"> => ({
  t: "flow-removed",
  reason: reasons[reason] ?? "other",
});
