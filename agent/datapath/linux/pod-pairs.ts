import type { CniResult, Owner } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import type { Cidr } from "../../../shared/net/ip.ts";
import { Kernel, type Link, type NetlinkSocket } from "../../protocols/netlink/mod.ts";
import { comparePodEnd, mismatch } from "./compare.ts";
import {
  findHostLink,
  findLink,
  linkGroup,
  listAllLinks,
  peerAddresses,
  Sweeper,
  takeOutOfService,
} from "./host-links.ts";
import { type Alias, parseAlias } from "./names.ts";
import { isOfNetwork, type PodNetwork } from "./plan.ts";
import { openSandbox, PodEnd } from "./pod-end.ts";

import { leadsInto, type WiringTools } from "./wiring.ts";

export interface Attachment {
  readonly alias: Alias;
  readonly link: Link;
}

/**
 * Our veth pairs on this node, and the sockets by which they are made. Everything but the sweeper is synchronous: each
 * call takes a few system calls.
 */
export class PodPairs implements AsyncDisposable {
  readonly tools: WiringTools;
  readonly #socket: NetlinkSocket;
  readonly #resources = new DisposableStack();

  /** In the calling thread's network namespace. @throws {NetlinkError} where the kernel refuses a socket */
  constructor(logger: Logger) {
    const kernel = this.#resources.use(new Kernel());
    this.#socket = this.#resources.use(kernel.openSocket());
    const sweeper = new Sweeper(this.#resources.use(kernel.openSocket()), linkGroup.toDelete, logger);
    this.tools = { kernel, socket: this.#socket, sweeper, logger };
  }

  /** Host ends of these networks that are in service or should be. */
  attachments(isWanted: (network: string) => boolean): readonly Attachment[] {
    const found: Attachment[] = [];
    for (const link of listAllLinks(this.#socket)) {
      const alias = link.group === linkGroup.toDelete ? undefined : parseAlias(link.alias);
      if (alias !== undefined && isWanted(alias.owner.network)) found.push({ alias, link });
    }
    return found;
  }

  /** The network's addresses in the owner's sandbox. */
  addresses(owner: Owner, network: PodNetwork): readonly Cidr[] {
    const host = findHostLink(this.#socket, owner);
    // One that was detached has its addresses until it is deleted.
    const isGone = host === undefined || host.group === linkGroup.toDelete;
    const standing = isGone ? [] : (peerAddresses(this.#socket, host) ?? []);
    return standing.flatMap(({ address }) => (isOfNetwork(network, address.ip) ? [address] : []));
  }

  /** The hardware address of the pod's end; `undefined` where it is gone. */
  podMac({ peerIndex, peerNamespaceId }: Link): string | undefined {
    if (peerIndex === undefined || peerNamespaceId === undefined) return undefined;
    return findLink(this.#socket, { index: peerIndex }, peerNamespaceId)?.mac;
  }

  /**
   * Compares an owner's pair with `prevResult`.
   * @param compareHost compares the host end
   * @throws {CniError} code 103 naming the first difference
   */
  check(owner: Owner, netns: string, prevResult: CniResult, compareHost: (host: Link) => void): void {
    using namespace = openSandbox(this.tools.kernel, netns);
    const host = findHostLink(this.#socket, owner);
    if (host === undefined || host.group === linkGroup.toDelete) {
      throw mismatch(`the attachment of "${owner.ifname}"`, "missing on the node", "an interface of ours");
    }
    compareHost(host);
    if (!leadsInto(this.#socket, host, namespace)) {
      throw mismatch(`the other end of "${host.name}"`, "in another namespace", `in "${netns}"`);
    }
    using pod = new PodEnd(this.tools.kernel, namespace);
    comparePodEnd(pod, owner.ifname, host, prevResult);
  }

  /** Takes an owner's pair out of service and deletes it in the background. Answers the host end, if there was one. */
  takeOutOfService(owner: Owner): Link | undefined {
    const link = findHostLink(this.#socket, owner);
    if (link === undefined) return undefined;
    takeOutOfService(this.#socket, link);
    void this.tools.sweeper.sweep();
    return link;
  }

  /**
   * Takes unfinished pairs of a killed agent, which have no owner, out of service.
   * @param bridges indexes of ours
   */
  removeHalfMade(bridges: readonly number[]): void {
    for (const link of listAllLinks(this.#socket)) {
      const isOurs = link.master === 0 || bridges.includes(link.master);
      if (link.group === linkGroup.beingMade && isOurs) takeOutOfService(this.#socket, link);
    }
  }

  /** Waits until everything that was taken out of service is deleted. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#resources.disposed) return;
    await this.tools.sweeper.sweep();
    this.#resources.dispose();
  }
}
