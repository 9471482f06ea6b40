import { actionsText } from "./action-text.ts";
import type { OpenFlowGroup, Selection } from "./group.ts";

/** One group on one line as `ovs-ofctl -O OpenFlow15 dump-groups` prints it, without the space in front. */
export function groupText({ id, type, buckets, selection }: OpenFlowGroup): string {
  const parts = [`group_id=${id}`, `type=${type}`, ...(selection === undefined ? [] : selectionText(selection))];
  for (const bucket of buckets) {
    parts.push(`bucket=bucket_id:${bucket.id}`);
    if (bucket.weight !== (type === "select" ? 1 : 0)) parts.push(`weight:${bucket.weight}`);
    parts.push(`actions=${actionsText(bucket.actions)}`);
  }
  return parts.join(",");
}

function selectionText({ method, parameter, fields }: Selection): string[] {
  const names = fields.map(({ name }) => name);
  return [
    `selection_method=${method}`,
    ...(parameter === 0n ? [] : [`selection_method_param=${parameter}`]),
    ...(names.length === 0 ? [] : names.length === 1 ? [`fields=${names[0]}`] : [`fields(${names.join(",")})`]),
  ];
}
