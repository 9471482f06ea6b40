import { type Field, fieldByCode, headerOf } from "./fields.ts";
import { type Match, MatchBuilder, type UnknownField } from "./match.ts";
import { MalformedMessage } from "./openflow-error.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

const OXM_MATCH = 1;
const hasMask = 0x100;

/** One OXM with its value, and its mask where it has one (OpenFlow 1.5.1, 7.2.3.2). */
export function writeOxm(writer: WireWriter, field: Field, value: bigint, mask: bigint): void {
  const header = headerOf(field);
  if (mask === field.ones) {
    writer.u32(header).uint(value, field.bytes);
    return;
  }
  writer.u32(header + hasMask + field.bytes);
  writer.uint(value, field.bytes).uint(mask, field.bytes);
}

/** `struct ofp_match` with its padding (7.2.3.1). */
export function writeMatch(writer: WireWriter, match: Match): void {
  const start = writer.length;
  writer.u16(OXM_MATCH).u16(0);
  writeOxms(writer, match);
  writer.setU16(start + 2, writer.length - start);
  writer.pad(start);
}

export function writeOxms(writer: WireWriter, match: Match): void {
  for (const { field, value, mask } of match.fields) writeOxm(writer, field, value, mask);
  for (const { header, payload } of match.unknown) writer.u32(header).bytes(payload);
}

/** @throws {MalformedMessage} */
export function readMatch(reader: WireReader): Match {
  const type = reader.u16();
  const length = reader.u16();
  if (type !== OXM_MATCH) throw reader.malformed(`the match has type ${type}, wanted ${OXM_MATCH}`);
  if (length < 4) throw reader.malformed(`the match says ${length} bytes, wanted 4 at least`);
  const match = readOxms(reader.part(length - 4, "a match"));
  reader.skipPadding(length);
  return match;
}

/** Fields to the end of `reader`. @throws {MalformedMessage} */
export function readOxms(reader: WireReader): Match {
  const found = new MatchBuilder();
  const unknown: UnknownField[] = [];
  while (reader.left > 0) {
    const oxm = readOxm(reader);
    if ("payload" in oxm) unknown.push(oxm);
    else if (!found.take(oxm.field, oxm.value, oxm.mask)) {
      throw reader.malformed(`${oxm.field.name} comes twice and is not the same`);
    }
  }
  return { fields: found.list(), unknown };
}

export type Oxm = { readonly field: Field; readonly value: bigint; readonly mask: bigint };

/** @throws {MalformedMessage} where lengths contradict one another */
export function readOxm(reader: WireReader): Oxm | UnknownField {
  const header = reader.u32();
  const part = reader.part(header & 0xff, "a field of a match");
  const isMasked = (header & hasMask) !== 0;
  const field = fieldByCode(header >>> 16, (header >>> 9) & 0x7f);
  if (field === undefined) return { header, payload: part.rest() };
  const width = isMasked ? 2 * field.bytes : field.bytes;
  if (part.left !== width) throw part.malformed(`${field.name} has ${part.left} bytes, wanted ${width}`);
  // Bits beyond the field's own say nothing; a mask of them would never be matched again.
  const value = part.uint(field.bytes) & field.ones;
  const mask = isMasked ? part.uint(field.bytes) & field.ones : field.ones;
  return { field, value: value & mask, mask };
}

/** An action names a field that is not in our table: it is kept as it came. */
export class UnknownFieldName extends MalformedMessage {}

/** A field's name as actions say it, without a value. @throws {MalformedMessage} */
export function readFieldName(reader: WireReader): Field {
  const header = reader.u32();
  const field = fieldByCode(header >>> 16, (header >>> 9) & 0x7f);
  if (field === undefined) throw new UnknownFieldName("an action", `0x${header.toString(16)} names no field`);
  if ((header & 0x1ff) !== field.bytes) {
    throw reader.malformed(`${field.name} is named with ${header & 0x1ff} bytes, wanted ${field.bytes}`);
  }
  return field;
}
