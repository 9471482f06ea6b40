import { type Action, type ActionOf, type Connection, type Controller, reasonAction } from "./action.ts";
import { writeNat } from "./conntrack.ts";
import { port16, Vendor, wholePacket } from "./constants.ts";
import { type Bits, headerOf } from "./fields.ts";
import { writeLearn } from "./learn.ts";
import { writeOxm } from "./match-wire.ts";
import { type WireWriter, writeProperty } from "./wire-writer.ts";

/** OFPAT_* (OpenFlow 1.5.1, 7.2.6). */
export const ActionType = {
  OUTPUT: 0,
  PUSH_VLAN: 17,
  POP_VLAN: 18,
  GROUP: 22,
  DEC_NW_TTL: 24,
  SET_FIELD: 25,
  COPY_FIELD: 28,
  METER: 29,
  EXPERIMENTER: 0xffff,
} as const;

/** NXAST_* (nicira-ext.h; Open vSwitch, lib/ofp-actions.c). */
export const NiciraAction = {
  RESUBMIT: 1,
  NOTE: 8,
  RESUBMIT_TABLE: 14,
  OUTPUT_REG: 15,
  LEARN: 16,
  CONJUNCTION: 34,
  CT: 35,
  NAT: 36,
  CONTROLLER2: 37,
  CT_CLEAR: 43,
  LEARN2: 45,
  RESUBMIT_TABLE_CT: 44,
} as const;

/** NXAC2PT_*: what CONTROLLER2 may say. */
export const ControllerProperty = {
  MAX_LEN: 0,
  CONTROLLER_ID: 1,
  REASON: 2,
  USERDATA: 3,
  PAUSE: 4,
  METER_ID: 5,
} as const;

/** NXAST_CT's word for "no table". */
export const noTable = 0xff;

export function writeActions(writer: WireWriter, actions: readonly Action[]): void {
  for (const action of actions) writeAction(writer, action);
}

function writeAction(writer: WireWriter, action: Action): WireWriter {
  switch (action.t) {
    case "output":
      return standard(writer, ActionType.OUTPUT, () => writer.u32(action.port).u16(action.maxLength).zeros(6));
    case "group":
      return standard(writer, ActionType.GROUP, () => writer.u32(action.group));
    case "meter":
      return standard(writer, ActionType.METER, () => writer.u32(action.meter));
    case "set-field":
      return standard(writer, ActionType.SET_FIELD, () => writeOxm(writer, action.field, action.value, action.mask));
    case "move":
      return writeMove(writer, action);
    case "push-vlan":
      return standard(writer, ActionType.PUSH_VLAN, () => writer.u16(action.type));
    case "pop-vlan":
      return standard(writer, ActionType.POP_VLAN, () => writer.zeros(4));
    case "dec-ttl":
      return standard(writer, ActionType.DEC_NW_TTL, () => writer.zeros(4));
    case "unknown":
      return writer.bytes(action.bytes);
    default:
      return writeExtension(writer, action);
  }
}

type Extension = ActionOf<
  "output-field" | "resubmit" | "ct-clear" | "conjunction" | "note" | "controller" | "ct" | "learn"
>;

function writeExtension(writer: WireWriter, action: Extension): WireWriter {
  switch (action.t) {
    case "output-field":
      return nicira(writer, NiciraAction.OUTPUT_REG, () => {
        writer.u16(rangeOf(action.source)).u32(headerOf(action.source.field)).u16(action.maxLength).zeros(6);
      });
    case "resubmit": {
      const subtype = action.tracked ? NiciraAction.RESUBMIT_TABLE_CT : NiciraAction.RESUBMIT_TABLE;
      return nicira(writer, subtype, () => {
        writer.u16(action.port === undefined ? 0xfff8 : port16(action.port)).u8(action.table ?? noTable);
      });
    }
    case "ct-clear":
      return nicira(writer, NiciraAction.CT_CLEAR, () => undefined);
    case "conjunction":
      return nicira(writer, NiciraAction.CONJUNCTION, () => {
        writer
          .u8(action.clause - 1)
          .u8(action.clauses)
          .u32(action.id);
      });
    case "note":
      return nicira(writer, NiciraAction.NOTE, () => writer.bytes(action.bytes));
    case "learn":
      return nicira(writer, action.limit > 0 ? NiciraAction.LEARN2 : NiciraAction.LEARN, () =>
        writeLearn(writer, action),
      );
    case "controller":
      return writeController(writer, action);
    case "ct":
      return writeConnection(writer, action);
  }
}

function writeMove(writer: WireWriter, { source, destination }: ActionOf<"move">): WireWriter {
  return standard(writer, ActionType.COPY_FIELD, () => {
    writer.u16(source.count).u16(source.from).u16(destination.from).zeros(2);
    writer.u32(headerOf(source.field)).u32(headerOf(destination.field));
  });
}

function writeConnection(writer: WireWriter, action: Connection): WireWriter {
  const { zone } = action;
  return nicira(writer, NiciraAction.CT, () => {
    writer.u16((action.commit ? 1 : 0) | (action.force ? 2 : 0));
    if (typeof zone === "number") writer.u32(0).u16(zone);
    else writer.u32(headerOf(zone.field)).u16(rangeOf(zone));
    writer
      .u8(action.table ?? noTable)
      .zeros(3)
      .u16(action.alg);
    const { nat } = action;
    if (nat !== undefined) nicira(writer, NiciraAction.NAT, () => writeNat(writer, nat));
    writeActions(writer, action.exec);
  });
}

function writeController(writer: WireWriter, action: Controller): WireWriter {
  return nicira(writer, NiciraAction.CONTROLLER2, () => {
    writer.zeros(6);
    const property = (type: number, body: () => void): void => writeProperty(writer, type, body);
    if (action.maxLength !== wholePacket) {
      property(ControllerProperty.MAX_LEN, () => writer.u16(action.maxLength));
    }
    if (action.controllerId !== 0) property(ControllerProperty.CONTROLLER_ID, () => writer.u16(action.controllerId));
    if (action.reason !== reasonAction) property(ControllerProperty.REASON, () => writer.u8(action.reason));
    if (action.userData.length > 0) property(ControllerProperty.USERDATA, () => writer.bytes(action.userData));
    if (action.pause) property(ControllerProperty.PAUSE, () => undefined);
    const { meter } = action;
    if (meter !== undefined) property(ControllerProperty.METER_ID, () => writer.u32(meter));
  });
}

/** Type, length, body, and zeros to a multiple of eight, which the length counts. */
function standard(writer: WireWriter, type: number, body: () => void): WireWriter {
  const start = writer.length;
  writer.u16(type).u16(0);
  body();
  writer.pad(start);
  writer.setU16(start + 2, writer.length - start);
  return writer;
}

function nicira(writer: WireWriter, subtype: number, body: () => void): WireWriter {
  return standard(writer, ActionType.EXPERIMENTER, () => {
    writer.u32(Vendor.NICIRA).u16(subtype);
    body();
  });
}

/** Where the bits begin, and how many they are less one, in 16 bits. */
const rangeOf = ({ from, count }: Bits): number => (from << 6) | (count - 1);
