import {
  addElements,
  askForElement,
  deleteElements,
  type Element,
  Errno,
  isErrno,
  listElements,
  type Message,
  type NetlinkSocket,
  type PacketSet,
  readElementKeys,
} from "../../protocols/netlink/mod.ts";

type ElementMessage = (elements: readonly [Element, ...Element[]]) => Message;

/** Elements of one request to the kernel: some 20 kB. */
const maxPerRequest = 200;
/** Elements of one message: its list must stay below 64 KiB. */
const maxPerMessage = 400;

export const elementName = ({ set, key }: Element): string => `${set.table.family} ${set.name} ${key.toHex()}`;

/**
 * Adds elements to sets of any tables, in the order of these sets; up to 200 of them all or none. Existing ones stay.
 * ENOENT: one of the sets is missing.
 * @param socket for packet filters. Keep it: to close one waits for what it has deleted.
 * @throws {NetlinkError}
 */
export function putElements(socket: NetlinkSocket, elements: readonly Element[]): void {
  inRequests(socket, elements, addElements);
}

/** Removes elements from their sets. Missing ones, with or without their sets, are no error. @throws {NetlinkError} */
export function takeElements(socket: NetlinkSocket, elements: readonly Element[]): void {
  try {
    inRequests(socket, elements, deleteElements);
  } catch (caught) {
    if (!isErrno(caught, Errno.ENOENT)) throw caught;
    // The kernel refuses a whole transaction if one element is missing.
    const missing = new Set(lackingElements(socket, elements));
    for (const element of elements) if (!missing.has(element)) socket.transact([deleteElements([element])]);
  }
}

/** Those that are not there. @throws {NetlinkError} */
export const lackingElements = (socket: NetlinkSocket, elements: readonly Element[]): readonly Element[] =>
  elements.filter((element) => !unlessMissing(false, () => socket.get(askForElement(element), () => true)));

/** All elements of some sets; none of a missing set. @throws {NetlinkError} */
export const standingElements = (socket: NetlinkSocket, sets: readonly PacketSet[]): readonly Element[] =>
  sets.flatMap((set) => {
    const keys = unlessMissing([], () => socket.dump(listElements(set), readElementKeys));
    return keys.flat().map((key) => ({ set, key }));
  });

/** What the kernel answers, or `otherwise` where it has no such thing. @throws {NetlinkError} */
export function unlessMissing<T>(otherwise: T, ask: () => T): T {
  try {
    return ask();
  } catch (caught) {
    if (isErrno(caught, Errno.ENOENT)) return otherwise;
    throw caught;
  }
}

function inRequests(socket: NetlinkSocket, elements: readonly Element[], message: ElementMessage): void {
  for (let at = 0; at < elements.length; at += maxPerRequest)
    socket.transact(elementMessages(elements.slice(at, at + maxPerRequest), message));
}

/** Messages of one set each, for one transaction. */
export function elementMessages(elements: readonly Element[], message: ElementMessage): readonly Message[] {
  const bySet = new Map<PacketSet, [Element, ...Element[]][]>();
  for (const element of elements) {
    const lists = bySet.get(element.set);
    const last = lists?.at(-1);
    if (lists === undefined) bySet.set(element.set, [[element]]);
    else if (last === undefined || last.length === maxPerMessage) lists.push([element]);
    else last.push(element);
  }
  const messages: Message[] = [];
  for (const lists of bySet.values()) for (const list of lists) messages.push(message(list));
  return messages;
}
