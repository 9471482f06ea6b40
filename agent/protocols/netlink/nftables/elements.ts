import { Flag } from "../constants.ts";
import { Attributes, fixedHeader, type RawMessage, readAttributes } from "../message-reader.ts";
import type { Message, MessageWriter } from "../message-writer.ts";
import { INTERVAL_END, Nfta, NftMessage, Verdict } from "./numbers.ts";
import { nftHeader, type PacketSet, padded } from "./objects.ts";

/** One element of a set, its parts one behind the other as the kernel has them. */
export interface Element {
  readonly set: PacketSet;
  readonly key: Uint8Array;
  /** Of a range: the last key in it. */
  readonly last?: Uint8Array;
  /** The chain that it leads to; packets return from there. */
  readonly chain?: string;
  /** What else it leads to, its parts as those of a key. */
  readonly value?: Uint8Array;
}

/** Each part begins at a multiple of four bytes. */
export const elementOf = (set: PacketSet, ...parts: readonly Uint8Array[]): Element => ({ set, key: joined(parts) });

/** The parts of a key, or of a value. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  // Each is asked for its length once: that takes the interpreter as long as to copy it.
  const starts: number[] = [];
  let length = 0;
  for (const part of parts) {
    starts.push(length);
    length += padded(part.length);
  }
  const key = new Uint8Array(length);
  for (const [i, part] of parts.entries()) key.set(part, starts[i]);
  return key;
}

/** Puts elements into their set; those that are there stay. All of one set. */
export const addElements = (elements: readonly [Element, ...Element[]]): Message =>
  elementMessage("add", NftMessage.NEWSETELEM, elements, Flag.CREATE);

/** Takes elements out of their set. ENOENT: one of them is not there. All of one set. */
export const deleteElements = (elements: readonly [Element, ...Element[]]): Message =>
  elementMessage("delete", NftMessage.DELSETELEM, elements);

/** Takes all elements out of a set. */
export const clearSet = (set: PacketSet): Message => ({
  action: () => `clear the set "${set.name}" of the table "${set.table.name}"`,
  type: NftMessage.DELSETELEM,
  body: (writer) => header(writer, set),
});

/** Asks for an element. ENOENT: it is not there, or its set is not. */
export const askForElement = (element: Element): Message =>
  elementMessage("look for", NftMessage.GETSETELEM, [element]);

function elementMessage(verb: string, type: number, elements: readonly [Element, ...Element[]], flags = 0): Message {
  const { set } = elements[0];
  return {
    type,
    flags,
    action: () => `${verb} elements of the set "${set.name}" of the table "${set.table.name}"`,
    body: (writer) => {
      header(writer, set).begin(Nfta.SET_ELEM_LIST_ELEMENTS);
      for (const element of elements) writeElement(writer, element);
      writer.end();
    },
  };
}

function writeElement(writer: MessageWriter, { set, key, last, chain, value }: Element): void {
  writer.begin(Nfta.LIST_ELEM).attrNested(Nfta.SET_ELEM_KEY, Nfta.DATA_VALUE, key);
  if (last !== undefined && set.key.length > 1) writer.attrNested(Nfta.SET_ELEM_KEY_END, Nfta.DATA_VALUE, last);
  if (value !== undefined) writer.attrNested(Nfta.SET_ELEM_DATA, Nfta.DATA_VALUE, value);
  if (chain !== undefined) {
    writer.begin(Nfta.SET_ELEM_DATA).begin(Nfta.DATA_VERDICT);
    writer.attrU32Net(Nfta.VERDICT_CODE, Verdict.jump).attrText(Nfta.VERDICT_CHAIN, chain).end().end();
  }
  writer.end();
  // With one part the kernel has an element where a range begins, and another behind it.
  const behind = last === undefined || set.key.length > 1 ? undefined : successor(last);
  if (behind === undefined) return;
  writer.begin(Nfta.LIST_ELEM).attrNested(Nfta.SET_ELEM_KEY, Nfta.DATA_VALUE, behind);
  writer.attrU32Net(Nfta.SET_ELEM_FLAGS, INTERVAL_END).end();
}

/** The next key; none behind the last of all. */
function successor(key: Uint8Array): Uint8Array | undefined {
  const next = key.slice();
  for (let i = next.length - 1; i >= 0; i--) {
    next[i] = ((next[i] ?? 0) + 1) & 0xff;
    if (next[i] !== 0) return next;
  }
  return undefined;
}

/** What each message about a set begins with: an ADD has four, of the same sets as the one before. */
const headers = new WeakMap<PacketSet, Uint8Array>();

function header(writer: MessageWriter, set: PacketSet): MessageWriter {
  const known = headers.get(set);
  if (known !== undefined) return writer.written(known);
  const { table, name } = set;
  const start = writer.length;
  nftHeader(writer, table).attrName(Nfta.SET_ELEM_LIST_TABLE, table.name).attrName(Nfta.SET_ELEM_LIST_SET, name);
  headers.set(set, writer.bytes.slice(start, writer.length));
  return writer;
}

/** ENOENT: there is no such set. */
export const listElements = (set: PacketSet): Message => ({
  action: () => `list the set "${set.name}" of the table "${set.table.name}"`,
  type: NftMessage.GETSETELEM,
  body: (writer) => header(writer, set),
});

/** Keys of the elements that one answer tells; their bytes stay. @throws {MalformedMessage} */
export const readElementKeys = (message: RawMessage): readonly Uint8Array[] =>
  readElements(message).map(({ key }) => key);

/** The same with what they lead to. @throws {MalformedMessage} */
export function readElements(message: RawMessage): readonly Omit<Element, "set">[] {
  const list = new Attributes(fixedHeader(message.body, 4).rest).bytes(Nfta.SET_ELEM_LIST_ELEMENTS);
  return [...readAttributes(list ?? new Uint8Array(0))].flatMap(([, element]) => {
    const of = new Attributes(element);
    const key = of.nested(Nfta.SET_ELEM_KEY)?.bytes(Nfta.DATA_VALUE);
    if (key === undefined) return [];
    const data = of.nested(Nfta.SET_ELEM_DATA);
    const value = data?.bytes(Nfta.DATA_VALUE);
    const chain = data?.nested(Nfta.DATA_VERDICT)?.text(Nfta.VERDICT_CHAIN);
    const last = of.nested(Nfta.SET_ELEM_KEY_END)?.bytes(Nfta.DATA_VALUE);
    return [
      {
        key: key.slice(),
        ...(value === undefined ? {} : { value: value.slice() }),
        ...(chain === undefined ? {} : { chain }),
        ...(last === undefined ? {} : { last: last.slice() }),
      },
    ];
  });
}
