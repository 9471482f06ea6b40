import type { Action } from "./action.ts";
import { readActions } from "./action-reader.ts";
import { writeActions } from "./action-writer.ts";
import { Group, MessageType, MultipartType, Vendor } from "./constants.ts";
import { type Field, type FieldName, fieldOf } from "./fields.ts";
import { readOxm, writeOxm } from "./match-wire.ts";
import { InvalidFlow } from "./openflow-error.ts";
import type { MultipartRequest, Request } from "./request.ts";
import { readProperties, type WireReader } from "./wire-reader.ts";
import { type WireWriter, writeProperty } from "./wire-writer.ts";

/** OFPGT_*: all buckets, one of them by weight, or the only one. */
const GroupType = { all: 0, select: 1, indirect: 2 } as const;
export type GroupType = keyof typeof GroupType;
const typeNames: readonly GroupType[] = ["all", "select", "indirect"];

export interface Bucket {
  /** The switch knows a bucket of its group by it. */
  readonly id: number;
  /** Of a group of type select, its share. */
  readonly weight: number;
  readonly actions: readonly Action[];
}

/** How a select group chooses, where the switch's own way will not do (Open vSwitch, group.txt). */
export interface Selection {
  readonly method: "hash" | "dp_hash";
  readonly parameter: bigint;
  readonly fields: readonly Field[];
}

export interface OpenFlowGroup {
  readonly id: number;
  readonly type: GroupType;
  readonly buckets: readonly Bucket[];
  readonly selection: Selection | undefined;
}

/** A bucket's number and weight may be left out. @throws {InvalidFlow} */
export function group(
  id: number,
  type: GroupType,
  buckets: readonly (Pick<Bucket, "actions"> & Partial<Bucket>)[],
  selection?: { readonly method: Selection["method"]; readonly parameter?: bigint; readonly fields?: FieldName[] },
): OpenFlowGroup {
  const what = `group ${id}`;
  if (!Number.isInteger(id) || id < 0 || id >= 0xffffff00) {
    throw new InvalidFlow(what, "its number is not from 0 to 4294967039");
  }
  if (type === "indirect" && buckets.length !== 1) {
    throw new InvalidFlow(what, `it has ${buckets.length} buckets, wanted one, since it is indirect`);
  }
  if (type !== "select" && (selection !== undefined || buckets.some(({ weight }) => weight !== undefined))) {
    throw new InvalidFlow(what, `it chooses by weight, wanted type "select" in place of "${type}"`);
  }
  const made = buckets.map((bucket, i) => ({ id: i, weight: type === "select" ? 1 : 0, ...bucket }));
  if (new Set(made.map((bucket) => bucket.id)).size < made.length) {
    throw new InvalidFlow(what, "two of its buckets have one number");
  }
  const fields = (selection?.fields ?? []).map(fieldOf);
  return {
    id,
    type,
    buckets: made,
    selection: selection && { method: selection.method, parameter: selection.parameter ?? 0n, fields },
  };
}

/** OFPGC_* (OpenFlow 1.5.1, 7.3.4.3). */
const GroupCommand = {
  add: 0,
  modify: 1,
  delete: 2,
  /** Of Open vSwitch's own (OFPGC11_ADD_OR_MOD in its openflow-1.1.h). */
  addOrModify: 0x8000,
} as const;
/** OFPG_BUCKET_ALL: what a command says that is not about one bucket. */
const allBuckets = 0xffffffff;

/** Whether there is one of its number already or not. */
export const addOrModifyGroup = (of: OpenFlowGroup): Request => groupMod("addOrModify", of);
export const deleteGroup = (id: number): Request => groupMod("delete", emptyGroup(id));

const emptyGroup = (id: number): OpenFlowGroup => ({ id, type: "all", buckets: [], selection: undefined });

/** `struct ofp_group_mod`. */
export function groupMod(command: keyof typeof GroupCommand, of: OpenFlowGroup): Request {
  return {
    action: `${verbs[command]} group ${of.id === Group.ALL ? "all" : of.id}`,
    type: MessageType.GROUP_MOD,
    body: (writer) => {
      writer.u16(GroupCommand[command]).u8(GroupType[of.type]).u8(0).u32(of.id);
      writeBuckets(writer, of);
      if (of.selection !== undefined) writeSelection(writer, of.selection);
    },
  };
}

const verbs = { add: "add", modify: "modify", delete: "delete", addOrModify: "add or modify" } as const;

function writeBuckets(writer: WireWriter, of: OpenFlowGroup): void {
  const lengthAt = writer.length;
  writer.u16(0).zeros(2).u32(allBuckets);
  const start = writer.length;
  for (const { id, weight, actions } of of.buckets) {
    const from = writer.length;
    writer.u16(0).u16(0).u32(id);
    writeActions(writer, actions);
    writer.setU16(from + 2, writer.length - from - 8);
    if (of.type === "select") writer.u16(0).u16(8).u16(weight).zeros(2);
    writer.setU16(from, writer.length - from);
  }
  writer.setU16(lengthAt, writer.length - start);
}

const experimenterProperty = 0xffff;
const selectionMethod = 1;
const methodBytes = 16;

/** `struct ntr_group_prop_selection_method`: each field with the bits that are to count, here all. */
function writeSelection(writer: WireWriter, { method, parameter, fields }: Selection): void {
  writeProperty(writer, experimenterProperty, () => {
    writer.u32(Vendor.NETRONOME).u32(selectionMethod).zeros(4).text(method, methodBytes).u64(parameter);
    for (const field of fields) writeOxm(writer, field, field.ones, field.ones);
  });
}

/** OFPMP_GROUP_DESC: the groups as they were made (7.3.5.11). */
export function groupsRequest(): MultipartRequest<OpenFlowGroup> {
  return {
    action: "list the groups",
    type: MultipartType.GROUP_DESC,
    body: (writer) => void writer.u32(Group.ALL).zeros(4),
    entry: readGroup,
  };
}

function readGroup(reader: WireReader): OpenFlowGroup {
  const length = reader.u16();
  if (length < 8) throw reader.malformed(`a group says ${length} bytes, wanted 8 at least`);
  const entry = reader.part(length - 2, "a group");
  const number = entry.u8();
  const type = typeNames[number];
  if (type === undefined) throw entry.malformed(`its type is ${number}, wanted all, select or indirect`);
  const id = entry.skip(1).u32();
  const buckets: Bucket[] = [];
  const list = entry.part(entry.u16() + 6, "the buckets of a group").skip(6);
  while (list.left > 0) buckets.push(readBucket(list, type));
  return { id, type, buckets, selection: readSelection(entry) };
}

function readBucket(list: WireReader, type: GroupType): Bucket {
  const length = list.u16();
  if (length < 8) throw list.malformed(`a bucket says ${length} bytes, wanted 8 at least`);
  const bucket = list.part(length - 2, "a bucket");
  const actionBytes = bucket.u16();
  const id = bucket.u32();
  const actions = readActions(bucket.part(actionBytes));
  let weight = type === "select" ? 1 : 0;
  for (const { code, body } of readProperties(bucket)) if (code === 0) weight = body.u16();
  return { id, weight, actions };
}

function readSelection(entry: WireReader): Selection | undefined {
  for (const { code, body } of readProperties(entry)) {
    if (code !== experimenterProperty || body.u32() !== Vendor.NETRONOME || body.u32() !== selectionMethod) continue;
    const method = body.skip(4).text(methodBytes);
    if (method !== "hash" && method !== "dp_hash") continue;
    const parameter = body.u64();
    const fields: Field[] = [];
    while (body.left > 0) {
      const oxm = readOxm(body);
      if ("field" in oxm) fields.push(oxm.field);
    }
    return { method, parameter, fields };
  }
  return undefined;
}
