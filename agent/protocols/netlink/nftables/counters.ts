import { Flag } from "../constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "../message-reader.ts";
import type { Message, MessageWriter } from "../message-writer.ts";
import { COUNTER_OBJECT, Nfta, NftMessage } from "./numbers.ts";
import { nftHeader, type Table } from "./objects.ts";

/** A counter that has a name, so that it outlives the rules that count in it. */
export interface NamedCounter {
  readonly name: string;
  readonly packets: number;
  readonly bytes: number;
}

const header = (writer: MessageWriter, table: Table, name: string): MessageWriter =>
  nftHeader(writer, table)
    .attrText(Nfta.OBJ_TABLE, table.name)
    .attrText(Nfta.OBJ_NAME, name)
    .attrU32Net(Nfta.OBJ_TYPE, COUNTER_OBJECT);

/** From 0; one that stands keeps what it has. */
export const createCounter = (table: Table, name: string): Message => ({
  action: () => `create the counter "${name}" of the table "${table.name}"`,
  type: NftMessage.NEWOBJ,
  flags: Flag.CREATE,
  body: (writer) => header(writer, table, name).begin(Nfta.OBJ_DATA).end(),
});

/** EBUSY: rules use it. */
export const deleteCounter = (table: Table, name: string): Message => ({
  action: () => `delete the counter "${name}" of the table "${table.name}"`,
  type: NftMessage.DELOBJ,
  body: (writer) => header(writer, table, name),
});

/** All counters with names of a table; none where there is no such table. */
export const listCounters = (table: Table): Message => ({
  action: () => `list the counters of the table "${table.name}"`,
  type: NftMessage.GETOBJ,
  body: (writer) =>
    nftHeader(writer, table).attrText(Nfta.OBJ_TABLE, table.name).attrU32Net(Nfta.OBJ_TYPE, COUNTER_OBJECT),
});

/** @throws {MalformedMessage} */
export function readCounter(message: RawMessage): NamedCounter | undefined {
  const of = new Attributes(fixedHeader(message.body, 4).rest);
  const [name, data] = [of.text(Nfta.OBJ_NAME), of.nested(Nfta.OBJ_DATA)];
  if (name === undefined) return undefined;
  const number = (type: number): number =>
    (data?.bytes(type) ?? new Uint8Array(0)).reduce((value, byte) => value * 256 + byte, 0);
  return { name, packets: number(Nfta.COUNTER_PACKETS), bytes: number(Nfta.COUNTER_BYTES) };
}
