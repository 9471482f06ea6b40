import { sameOwner } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import {
  Errno,
  getLink,
  isRefusal,
  type Link,
  type LinkAddress,
  type LinkKey,
  listAddresses,
  listLinks,
  type NetlinkSocket,
  readAddress,
  readLink,
  setLink,
} from "../../protocols/netlink/mod.ts";
import { parseAlias } from "./alias.ts";
import { ownerAltName } from "./names.ts";

/**
 * Interface groups that say in which state an interface of ours is. They outlive the agent: what a killed one
 * left half made or half deleted is seen by the next. The numbers spell "pip" and are else without meaning.
 */
export const linkGroup = {
  /** In service. */
  standing: 0,
  arriving: 0x70697001,
  leaving: 0x70697002,
  /** In service, and whoever forwards reads it beside the node's kernel, which is to hear nothing there. */
  beside: 0x70697003,
} as const;

/**
 * What the kernel answers about an interface by its index or name; `undefined` where it is gone. Whatever was seen a
 * moment ago may be: pods end, and people take interfaces away.
 * @param namespaceId of the namespace that is asked about, if it is another one; that may be gone as well
 */
export function ifStillThere<T>(ask: () => T, namespaceId?: number): T | undefined {
  try {
    return ask();
  } catch (caught) {
    // The kernel has no number of its own for the id of a namespace that has ended.
    const isGone = isRefusal(caught, Errno.ENODEV) || (namespaceId !== undefined && isRefusal(caught, Errno.EINVAL));
    if (isGone) return undefined;
    throw caught;
  }
}

/** @param namespaceId of the namespace that it is in, as a link names its other end's; absent: the socket's */
export const linkOrNone = (socket: NetlinkSocket, key: LinkKey, namespaceId?: number): Link | undefined =>
  ifStillThere(() => socket.get(getLink(key, namespaceId), readLink), namespaceId);

/** The addresses of an interface; `undefined` where it is gone. @param namespaceId as in `linkOrNone` */
export const addressesOn = (
  socket: NetlinkSocket,
  index: number,
  namespaceId?: number,
): readonly LinkAddress[] | undefined =>
  ifStillThere(() => socket.dump(listAddresses(index, namespaceId), readAddress), namespaceId)?.filter(
    (one) => one.index === index,
  );

/** Those of a pair's other end; `undefined` where that has gone. */
export function addressesBehind(
  socket: NetlinkSocket,
  { peerIndex, peerNamespaceId }: Pick<Link, "peerIndex" | "peerNamespaceId">,
): readonly LinkAddress[] | undefined {
  if (peerIndex === undefined || peerNamespaceId === undefined) return undefined;
  return addressesOn(socket, peerIndex, peerNamespaceId);
}

/** The host's end of the owner's pair by its second name, also one that is leaving. One look-up, however many there are. */
export function findNamed(socket: NetlinkSocket, owner: Owner): Link | undefined {
  const named = linkOrNone(socket, { altName: ownerAltName(owner) });
  return named !== undefined && isOf(named, owner) ? named : undefined;
}

/**
 * The same, with the alias as the last word: anybody can take the second name off. Asks the kernel each time:
 * there is no memory here that could be wrong.
 */
export function findHostLink(socket: NetlinkSocket, owner: Owner): Link | undefined {
  return findNamed(socket, owner) ?? allLinks(socket).find((link) => isOf(link, owner));
}

function isOf(link: Link, owner: Owner): boolean {
  const alias = parseAlias(link.alias);
  return alias !== undefined && sameOwner(alias.owner, owner);
}

export function allLinks(socket: NetlinkSocket): Link[] {
  return socket.dump(listLinks(), readLink);
}

/**
 * Takes an interface out of service for good: down, out of its kernel bridge, and in the group that the sweeper
 * deletes. From then on nothing reaches the pod by its address. One that is gone already is no error.
 * @throws {NetlinkError}
 */
export function retire(socket: NetlinkSocket, link: Link): void {
  // Ports of Open vSwitch's kernel module are not left in this way, and go with the interface all the same.
  const place = link.isBridgePort ? { master: 0 } : {};
  ifStillThere(() => socket.run(setLink(link.name, link.index, { up: false, ...place, group: linkGroup.leaving })));
}
