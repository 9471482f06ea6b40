import { type Action, type Nat, reasonAction } from "./action.ts";
import { ActionType, ControllerProperty, NiciraAction, noTable } from "./action-writer.ts";
import { readNat } from "./conntrack.ts";
import { port32, Vendor, wholePacket } from "./constants.ts";
import type { Bits, Field } from "./fields.ts";
import { readLearn } from "./learn.ts";
import { readFieldName, readOxm, UnknownFieldName } from "./match-wire.ts";
import type { WireReader } from "./wire-reader.ts";

const smallestAction = 8;
/** How often actions may hold actions: ct within clone is two, and nobody needs four. */
const maxDepth = 4;

/** Actions to the end of `reader`; one that is not known is kept as it came. @throws {MalformedMessage} */
export function readActions(reader: WireReader): readonly Action[] {
  const actions: Action[] = [];
  while (reader.left > 0) actions.push(readAction(reader, 0));
  return actions;
}

function readAction(reader: WireReader, depth: number): Action {
  const head = reader.peekU32();
  const length = head & 0xffff;
  if (length < smallestAction || length % 8 !== 0) {
    throw reader.malformed(`an action says ${length} bytes, wanted a multiple of 8`);
  }
  const whole = reader.ahead(length, "an action");
  const body = reader.part(length, "an action").skip(4);
  try {
    return readKnown(head >>> 16, body, depth) ?? { t: "unknown", bytes: whole.rest() };
  } catch (caught) {
    if (caught instanceof UnknownFieldName) return { t: "unknown", bytes: whole.rest() };
    throw caught;
  }
}

function readKnown(type: number, body: WireReader, depth: number): Action | undefined {
  switch (type) {
    case ActionType.OUTPUT:
      return { t: "output", port: body.u32(), maxLength: body.u16() };
    case ActionType.GROUP:
      return { t: "group", group: body.u32() };
    case ActionType.METER:
      return { t: "meter", meter: body.u32() };
    case ActionType.SET_FIELD:
      return readSetField(body);
    case ActionType.COPY_FIELD:
      return readMove(body);
    case ActionType.PUSH_VLAN:
      return { t: "push-vlan", type: body.u16() };
    case ActionType.POP_VLAN:
      return { t: "pop-vlan" };
    case ActionType.DEC_NW_TTL:
      return { t: "dec-ttl" };
    case ActionType.EXPERIMENTER:
      return readExperimenter(body, depth);
    default:
      return undefined;
  }
}

function readExperimenter(body: WireReader, depth: number): Action | undefined {
  if (body.u32() !== Vendor.NICIRA) return undefined;
  const subtype = body.u16();
  switch (subtype) {
    case NiciraAction.RESUBMIT:
    case NiciraAction.RESUBMIT_TABLE:
    case NiciraAction.RESUBMIT_TABLE_CT:
      return readResubmit(body, subtype);
    case NiciraAction.NOTE:
      return { t: "note", bytes: body.rest() };
    case NiciraAction.OUTPUT_REG:
      return { t: "output-field", source: readRange(body, body.u16()), maxLength: body.u16() };
    case NiciraAction.LEARN:
    case NiciraAction.LEARN2:
      return readLearn(body, subtype === NiciraAction.LEARN2);
    case NiciraAction.CONJUNCTION:
      return { t: "conjunction", clause: body.u8() + 1, clauses: body.u8(), id: body.u32() };
    case NiciraAction.CT:
      return readConnection(body, depth);
    case NiciraAction.CONTROLLER2:
      return readController(body.skip(6));
    case NiciraAction.CT_CLEAR:
      return { t: "ct-clear" };
    default:
      return undefined;
  }
}

function readResubmit(body: WireReader, subtype: number): Action {
  const port = body.u16();
  const table = subtype === NiciraAction.RESUBMIT ? noTable : body.u8();
  return {
    t: "resubmit",
    port: port === 0xfff8 ? undefined : port32(port),
    table: table === noTable ? undefined : table,
    tracked: subtype === NiciraAction.RESUBMIT_TABLE_CT,
  };
}

function readSetField(body: WireReader): Action {
  const oxm = readOxm(body);
  if ("payload" in oxm) throw new UnknownFieldName("an action", "it sets a field that is not known");
  return { t: "set-field", ...oxm };
}

function readMove(body: WireReader): Action {
  const count = body.u16();
  const [from, to] = [body.u16(), body.u16()];
  body.skip(2);
  const source = bitsIn(body, readFieldName(body), from, count);
  const destination = bitsIn(body, readFieldName(body), to, count);
  return { t: "move", source, destination };
}

function readConnection(body: WireReader, depth: number): Action {
  const flags = body.u16();
  const isField = body.peekU32() !== 0;
  const zoneField = isField ? readFieldName(body) : undefined;
  if (zoneField === undefined) body.skip(4);
  const zone = body.u16();
  const table = body.u8();
  const alg = body.skip(3).u16();
  const inner = [...readNested(body, depth)];
  const [first] = inner;
  const nat = first !== undefined && first.t === "nat" ? first.nat : undefined;
  const exec = inner.slice(nat === undefined ? 0 : 1).map((action) => {
    if (action.t === "nat") throw body.malformed('"ct" has another action in front of "nat"');
    return action;
  });
  return {
    t: "ct",
    commit: (flags & 1) !== 0,
    force: (flags & 2) !== 0,
    zone: zoneField === undefined ? zone : bitsIn(body, zoneField, zone >> 6, (zone & 0x3f) + 1),
    table: table === noTable ? undefined : table,
    alg,
    nat,
    exec,
  };
}

/** What stands within "ct": actions, and "nat", which stands nowhere else. */
function* readNested(body: WireReader, depth: number): Generator<Action | { readonly t: "nat"; readonly nat: Nat }> {
  if (depth + 1 >= maxDepth) throw body.malformed(`actions lie ${depth} deep within actions`);
  while (body.left > 0) {
    const nat = readNatAction(body);
    yield nat === undefined ? readAction(body, depth + 1) : { t: "nat", nat };
  }
}

function readNatAction(body: WireReader): Nat | undefined {
  const head = body.peekU32();
  if (head >>> 16 !== ActionType.EXPERIMENTER || body.left < 16 || (head & 0xffff) < 16) return undefined;
  const probe = body.ahead(10).skip(4);
  if (probe.u32() !== Vendor.NICIRA || probe.u16() !== NiciraAction.NAT) return undefined;
  return readNat(body.part(head & 0xffff, "nat").skip(10));
}

function readController(body: WireReader): Action {
  const found = { maxLength: wholePacket, controllerId: 0, reason: reasonAction as number, pause: false };
  let userData: Uint8Array = new Uint8Array(0);
  let meter: number | undefined;
  while (body.left >= 4) {
    const type = body.u16();
    const length = body.u16();
    if (length < 4) throw body.malformed(`a property of "controller" says ${length} bytes, wanted 4 at least`);
    const property = body.part(length - 4, "a property of controller");
    body.skipPadding(length);
    if (type === ControllerProperty.MAX_LEN) found.maxLength = property.u16();
    else if (type === ControllerProperty.CONTROLLER_ID) found.controllerId = property.u16();
    else if (type === ControllerProperty.REASON) found.reason = property.u8();
    else if (type === ControllerProperty.USERDATA) userData = property.rest();
    else if (type === ControllerProperty.PAUSE) found.pause = true;
    else if (type === ControllerProperty.METER_ID) meter = property.u32();
  }
  return { t: "controller", ...found, userData, meter };
}

function readRange(body: WireReader, range: number): Bits {
  return bitsIn(body, readFieldName(body), range >> 6, (range & 0x3f) + 1);
}

function bitsIn(body: WireReader, field: Field, from: number, count: number): Bits {
  if (count === 0 || from + count > field.bits) {
    throw body.malformed(`${count} bits from ${from} on are not in ${field.name}`);
  }
  return { field, from, count };
}
