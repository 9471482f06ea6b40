import { Group, MultipartType } from "./constants.ts";
import type { MultipartRequest } from "./multipart.ts";
import type { WireReader } from "./wire-reader.ts";

/** What a group and its buckets have done so far; a bucket is known by its place. */
export interface GroupCounters {
  readonly id: number;
  /** Flows and groups that lead to it. */
  readonly references: number;
  readonly durationMs: number;
  readonly packets: bigint;
  readonly bytes: bigint;
  readonly buckets: readonly { readonly packets: bigint; readonly bytes: bigint }[];
}

/** OFPMP_GROUP_STATS (OpenFlow 1.5.1, 7.3.5.10), the same in 1.3. */
export function groupCountersRequest(id: number = Group.ALL): MultipartRequest<GroupCounters> {
  return {
    action: `count for ${id === Group.ALL ? "all groups" : `group ${id}`}`,
    type: MultipartType.GROUP,
    body: (writer) => writer.u32(id).zeros(4),
    entry: readCounters,
  };
}

function readCounters(reader: WireReader): GroupCounters {
  const length = reader.u16();
  if (length < 40) throw reader.malformed(`a group says ${length} bytes, wanted 40 at least`);
  const entry = reader.part(length - 2, "the counters of a group").skip(2);
  const id = entry.u32();
  const references = entry.u32();
  const [packets, bytes] = [entry.skip(4).u64(), entry.u64()];
  const durationMs = entry.u32() * 1000 + entry.u32() / 1e6;
  const buckets: { packets: bigint; bytes: bigint }[] = [];
  while (entry.left > 0) buckets.push({ packets: entry.u64(), bytes: entry.u64() });
  return { id, references, durationMs, packets, bytes, buckets };
}
