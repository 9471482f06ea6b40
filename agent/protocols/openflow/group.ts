import type { Action } from "./action.ts";
import { readActions } from "./action-reader.ts";
import { writeActions } from "./action-writer.ts";
import { Group, MessageType, MultipartType, Port, Vendor, Version } from "./constants.ts";
import { type Field, type FieldName, fieldOf } from "./fields.ts";
import { readOxm, writeOxm } from "./match-wire.ts";
import type { MultipartRequest } from "./multipart.ts";
import { InvalidFlow, OpenFlowError } from "./openflow-error.ts";
import type { Request } from "./request.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** OFPGT_*: all buckets, one of them by weight, or the only one. */
const GroupType = { all: 0, select: 1, indirect: 2 } as const;
export type GroupType = keyof typeof GroupType;
const typeNames: readonly GroupType[] = ["all", "select", "indirect"];

export interface Bucket {
  /** By it a bucket is taken out again; since 1.5. */
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
  insertBucket: 3,
  removeBucket: 5,
  /** Of Open vSwitch's own (OFPGC11_ADD_OR_MOD in its openflow-1.1.h). */
  addOrModify: 0x8000,
} as const;
const BucketId = { FIRST: 0xfffffffd, LAST: 0xfffffffe, ALL: 0xffffffff } as const;

export const addGroup = (of: OpenFlowGroup): Request => groupMod("add", of);
export const modifyGroup = (of: OpenFlowGroup): Request => groupMod("modify", of);
/** Whether there is one of its number already or not. */
export const addOrModifyGroup = (of: OpenFlowGroup): Request => groupMod("addOrModify", of);
export const deleteGroup = (id: number): Request => groupMod("delete", emptyGroup(id));
export const deleteAllGroups = (): Request => groupMod("delete", emptyGroup(Group.ALL));

/** Puts buckets behind those that are there; since 1.5. */
export const insertBuckets = (of: OpenFlowGroup): Request => groupMod("insertBucket", of, BucketId.LAST);

/** Takes one bucket out, or all; since 1.5. */
export const removeBucket = (id: number, bucket: number | "all"): Request =>
  groupMod("removeBucket", emptyGroup(id), bucket === "all" ? BucketId.ALL : bucket);

const emptyGroup = (id: number): OpenFlowGroup => ({ id, type: "all", buckets: [], selection: undefined });

/** As the specification wants the command's bucket where the command needs none. */
function groupMod(command: keyof typeof GroupCommand, of: OpenFlowGroup, bucket: number = BucketId.ALL): Request {
  const action = `${verbs[command]} group ${of.id === Group.ALL ? "all" : of.id}`;
  return {
    action,
    type: MessageType.GROUP_MOD,
    body: (writer, version) => {
      writer.u16(GroupCommand[command]).u8(GroupType[of.type]).u8(0).u32(of.id);
      if (version >= Version.v15) writeBody15(writer, of, bucket);
      else if (command === "insertBucket" || command === "removeBucket" || of.selection !== undefined) {
        throw new OpenFlowError("unsupported", action, "OpenFlow 1.3 was agreed on, wanted 1.5 for it");
      } else for (const each of of.buckets) writeBucket13(writer, each);
    },
  };
}

const verbs = {
  add: "add",
  modify: "modify",
  delete: "delete",
  insertBucket: "insert buckets into",
  removeBucket: "remove a bucket of",
  addOrModify: "add or modify",
} as const;

function writeBody15(writer: WireWriter, of: OpenFlowGroup, commandBucket: number): void {
  const lengthAt = writer.length;
  writer.u16(0).zeros(2).u32(commandBucket);
  const start = writer.length;
  for (const { id, weight, actions } of of.buckets) {
    const from = writer.length;
    writer.u16(0).u16(0).u32(id);
    writeActions(writer, actions, Version.v15);
    writer.setU16(from + 2, writer.length - from - 8);
    if (of.type === "select") writer.u16(0).u16(8).u16(weight).zeros(2);
    writer.setU16(from, writer.length - from);
  }
  writer.setU16(lengthAt, writer.length - start);
  if (of.selection !== undefined) writeSelection(writer, of.selection);
}

function writeBucket13(writer: WireWriter, { weight, actions }: Bucket): void {
  const start = writer.length;
  writer.u16(0).u16(weight).u32(Port.ANY).u32(Group.ANY).zeros(4);
  writeActions(writer, actions, Version.v13);
  writer.setU16(start, writer.length - start);
}

const experimenterProperty = 0xffff;
const selectionMethod = 1;
const methodBytes = 16;

/** `struct ntr_group_prop_selection_method`: each field with the bits that are to count, here all. */
function writeSelection(writer: WireWriter, { method, parameter, fields }: Selection): void {
  const start = writer.length;
  writer.u16(experimenterProperty).u16(0).u32(Vendor.NETRONOME).u32(selectionMethod).zeros(4);
  writer.text(method, methodBytes).u64(parameter);
  for (const field of fields) writeOxm(writer, field, field.ones, field.ones);
  writer.setU16(start + 2, writer.length - start);
  writer.pad(start);
}

/** OFPMP_GROUP_DESC: the groups as they were made (7.3.5.11). */
export function groupsRequest(): MultipartRequest<OpenFlowGroup> {
  return {
    action: "list the groups",
    type: MultipartType.GROUP_DESC,
    // 1.3 has no choice here.
    body: (writer, version) => void (version >= Version.v15 && writer.u32(Group.ALL).zeros(4)),
    entry: readGroup,
  };
}

function readGroup(reader: WireReader, version: Version): OpenFlowGroup {
  const length = reader.u16();
  if (length < 8) throw reader.malformed(`a group says ${length} bytes, wanted 8 at least`);
  const entry = reader.part(length - 2, "a group");
  const number = entry.u8();
  const type = typeNames[number];
  if (type === undefined) throw entry.malformed(`its type is ${number}, wanted all, select or indirect`);
  const id = entry.skip(1).u32();
  const buckets: Bucket[] = [];
  if (version < Version.v15) {
    while (entry.left > 0) buckets.push(readBucket13(entry, buckets.length));
    return { id, type, buckets, selection: undefined };
  }
  const list = entry.part(entry.u16() + 6, "the buckets of a group").skip(6);
  while (list.left > 0) buckets.push(readBucket15(list, type));
  return { id, type, buckets, selection: readSelection(entry) };
}

function readBucket15(list: WireReader, type: GroupType): Bucket {
  const length = list.u16();
  if (length < 8) throw list.malformed(`a bucket says ${length} bytes, wanted 8 at least`);
  const bucket = list.part(length - 2, "a bucket");
  const actionBytes = bucket.u16();
  const id = bucket.u32();
  const actions = readActions(bucket.part(actionBytes));
  let weight = type === "select" ? 1 : 0;
  for (const { code, body } of properties(bucket)) if (code === 0) weight = body.u16();
  return { id, weight, actions };
}

function readBucket13(list: WireReader, id: number): Bucket {
  const length = list.u16();
  if (length < 16) throw list.malformed(`a bucket says ${length} bytes, wanted 16 at least`);
  const bucket = list.part(length - 2, "a bucket");
  const weight = bucket.u16();
  return { id, weight, actions: readActions(bucket.skip(12)) };
}

function readSelection(entry: WireReader): Selection | undefined {
  for (const { code, body } of properties(entry)) {
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

/** Type, length, body, and padding that the length does not count. @throws {MalformedMessage} */
export function* properties(reader: WireReader): Generator<{ readonly code: number; readonly body: WireReader }> {
  while (reader.left > 0) {
    const code = reader.u16();
    const length = reader.u16();
    if (length < 4) throw reader.malformed(`a property says ${length} bytes, wanted 4 at least`);
    const body = reader.part(length - 4, "a property");
    reader.skipPadding(length);
    yield { code, body };
  }
}
