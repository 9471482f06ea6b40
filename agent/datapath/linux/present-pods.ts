import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { type Ip, sameIp } from "../../../shared/net/ip.ts";
import { type Element, Errno, isRefusal, type NetlinkSocket } from "../../protocols/netlink/mod.ts";
import { absentRuleset, presentElements, type Routed } from "./absent-rules.ts";
import { installRuleset, missingFromRuleset } from "./rule-keeper.ts";
import { putElements, takeElements } from "./set-elements.ts";

interface PresentPod {
  readonly owner: Owner;
  readonly ips: readonly Ip[];
}

/** Which addresses of its subnets the node's kernel sends to: those that a pod has. */
export class PresentPods {
  readonly #socket: NetlinkSocket;
  readonly #absent: ReturnType<typeof absentRuleset>;
  /** By their owners' keys. */
  readonly #pods = new Map<string, readonly Ip[]>();

  /** @param socket for packet filters. Keep it: to close one waits for what it has deleted. */
  constructor(socket: NetlinkSocket, network: Routed) {
    this.#socket = socket;
    this.#absent = absentRuleset(network);
  }

  /** Pods that stand already: the kernel hears of all of them at once, with `install`, as one alone would cut the others off. */
  restore(pods: Iterable<PresentPod>): void {
    for (const { owner, ips } of pods) this.#pods.set(ownerKey(owner), ips);
  }

  /** Puts rules and addresses there, and takes out those that nobody has. @throws {NetlinkError} */
  install(): void {
    installRuleset(this.#socket, this.#absent.ruleset, this.#all());
  }

  /** Before somebody is to reach the pod. Rules that somebody has taken away come back. @throws {NetlinkError} */
  admit({ owner, ips }: PresentPod): void {
    const key = ownerKey(owner);
    const before = this.#pods.get(key) ?? [];
    this.#pods.set(key, ips);
    try {
      putElements(this.#socket, presentElements(this.#absent.sets, ips));
    } catch (caught) {
      if (!isRefusal(caught, Errno.ENOENT)) throw caught;
      this.install();
    }
    this.#take(before);
  }

  /** Once nobody is to reach the pod any more. @throws {NetlinkError} */
  dismiss(owner: Owner): void {
    const key = ownerKey(owner);
    const before = this.#pods.get(key) ?? [];
    this.#pods.delete(key);
    this.#take(before);
  }

  /** What is not as it should be, in sentences. @throws {NetlinkError} */
  missing(): readonly string[] {
    return missingFromRuleset(this.#socket, this.#absent.ruleset, this.#all());
  }

  /** Those that are nobody's now: an address may have a successor already. */
  #take(ips: readonly Ip[]): void {
    if (ips.length === 0) return;
    const others = [...this.#pods.values()].flat();
    const absent = ips.filter((ip) => !others.some((other) => sameIp(ip, other)));
    if (absent.length > 0) takeElements(this.#socket, presentElements(this.#absent.sets, absent));
  }

  #all(): readonly Element[] {
    return presentElements(this.#absent.sets, [...this.#pods.values()].flat());
  }
}
