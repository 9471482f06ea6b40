import type { Action } from "./action.ts";
import { readActions } from "./action-reader.ts";
import { writeActions } from "./action-writer.ts";
import { Version } from "./constants.ts";
import type { Instructions } from "./flow.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** OFPIT_* (OpenFlow 1.5.1, 7.2.5). METER is one of 1.3; later it is an action. */
const InstructionType = {
  GOTO_TABLE: 1,
  WRITE_METADATA: 2,
  WRITE_ACTIONS: 3,
  APPLY_ACTIONS: 4,
  CLEAR_ACTIONS: 5,
  METER: 6,
} as const;

const allBits = 0xffff_ffff_ffff_ffffn;

/** @throws {OpenFlowError} where `version` cannot say an action */
export function writeInstructions(writer: WireWriter, of: Instructions, version: Version): void {
  let { actions } = of;
  const [first] = actions;
  if (version < Version.v15 && first?.t === "meter") {
    writer.u16(InstructionType.METER).u16(8).u32(first.meter);
    actions = actions.slice(1);
  }
  if (actions.length > 0) withActions(writer, InstructionType.APPLY_ACTIONS, actions, version);
  if (of.clearActions) withActions(writer, InstructionType.CLEAR_ACTIONS, [], version);
  if (of.writeActions.length > 0) withActions(writer, InstructionType.WRITE_ACTIONS, of.writeActions, version);
  if (of.metadata !== undefined) {
    writer.u16(InstructionType.WRITE_METADATA).u16(24).zeros(4).u64(of.metadata.value).u64(of.metadata.mask);
  }
  if (of.gotoTable !== undefined) writer.u16(InstructionType.GOTO_TABLE).u16(8).u8(of.gotoTable).zeros(3);
}

function withActions(writer: WireWriter, type: number, actions: readonly Action[], version: Version): void {
  const start = writer.length;
  writer.u16(type).u16(0).zeros(4);
  writeActions(writer, actions, version);
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
  let meter: readonly Action[] = [];
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
    else if (type === InstructionType.METER) meter = [{ t: "meter", meter: body.u32() }];
    else throw reader.malformed(`an instruction has type ${type}, which is not known`);
  }
  return { ...found, actions: [...meter, ...found.actions] };
}

function readMetadata(body: WireReader): { value: bigint; mask: bigint } {
  return { value: body.u64(), mask: body.u64() };
}

/** Whether all of the metadata is written. */
export const isWholeMetadata = (mask: bigint): boolean => mask === allBits;
