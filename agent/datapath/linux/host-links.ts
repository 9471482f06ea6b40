import { sameOwner } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  deleteLinksOfGroup,
  Errno,
  getLink,
  isErrno,
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
import { ownerAltName, parseAlias } from "./names.ts";

/**
 * Interface groups that say in which state an interface of ours is. They outlive the agent: what a killed one
 * left half made or half deleted is seen by the next. The numbers spell "pip" and are else without meaning.
 */
export const linkGroup = {
  /** In service. */
  inService: 0,
  beingMade: 0x70697001,
  toDelete: 0x70697002,
  /** In service as a port of a switch in user space: the node's kernel must ignore its packets. */
  onSwitch: 0x70697003,
} as const;

/**
 * What the kernel answers about an interface by its index or name; `undefined` where it is gone. An interface may
 * disappear at any time when a pod ends or somebody deletes it.
 * @param namespaceId of the namespace that is asked about, if it is another one; that may be gone as well
 */
export function undefinedIfGone<T>(ask: () => T, namespaceId?: number): T | undefined {
  try {
    return ask();
  } catch (caught) {
    // The kernel has no errno of its own for the id of an ended namespace.
    const isGone = isErrno(caught, Errno.ENODEV) || (namespaceId !== undefined && isErrno(caught, Errno.EINVAL));
    if (isGone) return undefined;
    throw caught;
  }
}

/** @param namespaceId of the namespace that it is in, as a link names its other end's; absent: the socket's */
export const findLink = (socket: NetlinkSocket, key: LinkKey, namespaceId?: number): Link | undefined =>
  undefinedIfGone(() => socket.get(getLink(key, namespaceId), readLink), namespaceId);

/**
 * The interface of this name, for one that each ADD asks about: as it was read last, if it still stands so.
 * @param known what was answered the last time; only name, index and hardware address of the answer are current
 */
export const findAgain = (socket: NetlinkSocket, name: string, known: Link | undefined): Link | undefined =>
  known?.up && socket.stands(known) ? known : findLink(socket, { name });

/** The addresses of an interface; `undefined` where it is gone. @param namespaceId as in `findLink` */
export const addressesOn = (
  socket: NetlinkSocket,
  index: number,
  namespaceId?: number,
): readonly LinkAddress[] | undefined =>
  undefinedIfGone(() => socket.dump(listAddresses(index, namespaceId), readAddress), namespaceId)?.filter(
    (one) => one.index === index,
  );

/** Those of a pair's other end; `undefined` where that has gone. */
export function peerAddresses(
  socket: NetlinkSocket,
  { peerIndex, peerNamespaceId }: Pick<Link, "peerIndex" | "peerNamespaceId">,
): readonly LinkAddress[] | undefined {
  if (peerIndex === undefined || peerNamespaceId === undefined) return undefined;
  return addressesOn(socket, peerIndex, peerNamespaceId);
}

/**
 * The host end of the owner's pair by its second name, also one that is being deleted. One look-up, however many
 * interfaces exist.
 */
export function findNamed(socket: NetlinkSocket, owner: Owner): Link | undefined {
  const named = findLink(socket, { altName: ownerAltName(owner) });
  return named !== undefined && isOf(named, owner) ? named : undefined;
}

/**
 * The same, but the alias decides, because anybody can remove the second name. The kernel is asked each time, so there
 * is no cache that could be wrong.
 */
export function findHostLink(socket: NetlinkSocket, owner: Owner): Link | undefined {
  return findNamed(socket, owner) ?? listAllLinks(socket).find((link) => isOf(link, owner));
}

function isOf(link: Link, owner: Owner): boolean {
  const alias = parseAlias(link.alias);
  return alias !== undefined && sameOwner(alias.owner, owner);
}

/** The beginning of a sentence about so many. */
export const portsOf = ({ length }: readonly Link[]): string =>
  length === 1 ? "1 pod's port is" : `${length} pods' ports are`;

export function listAllLinks(socket: NetlinkSocket): Link[] {
  return socket.dump(listLinks(), readLink);
}

/**
 * Takes an interface out of service for good: down, out of its kernel bridge, and in the group that the sweeper
 * deletes. From then on nothing reaches the pod by its address. One that is gone already is no error.
 * @throws {NetlinkError}
 */
export function takeOutOfService(socket: NetlinkSocket, link: Link): void {
  // Ports of Open vSwitch's kernel module cannot be detached like this; they go with the interface.
  const place = link.isBridgePort ? { master: 0 } : {};
  undefinedIfGone(() => socket.run(setLink(link.name, link.index, { up: false, ...place, group: linkGroup.toDelete })));
}

/**
 * Deletes the marked interfaces, all at once and in the background.
 *
 * A deletion blocks its thread for about 15 ms, and 50 in one request hardly longer. So it runs in the runtime's thread
 * pool, one request at a time; interfaces marked meanwhile go with the next.
 */
export class Sweeper {
  readonly #socket: NetlinkSocket;
  readonly #group: number;
  readonly #logger: Logger;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  /** `socket` is for this sweeper alone. */
  constructor(socket: NetlinkSocket, group: number, logger: Logger) {
    this.#socket = socket;
    this.#group = group;
    this.#logger = logger;
  }

  /**
   * Resolves when all interfaces marked before this call are gone. Never rejects: failures are logged and tried again
   * with the next request.
   */
  sweep(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#running = this.#next ?? Promise.resolve();
      this.#next = undefined;
      return this.#deleteGroup();
    });
    return this.#next;
  }

  async #deleteGroup(): Promise<void> {
    try {
      await this.#socket.post(deleteLinksOfGroup(this.#group));
    } catch (caught) {
      if (isErrno(caught, Errno.ENODEV)) return;
      this.#logger.error("cannot delete detached interfaces", { error: reasonOf(caught) });
    }
  }
}
