import { sameOwner } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Ip, ipOf, sameIp } from "../../../shared/net/ip.ts";
import { formatMac, parseMac } from "../../../shared/net/mac.ts";
import {
  type Element,
  Errno,
  elementOf,
  ipBytes,
  ipFromBytes,
  isErrno,
  joined,
  type NetlinkSocket,
} from "../../protocols/netlink/mod.ts";
import { linkLocalBytes, linkLocalOf } from "../addresses.ts";
import { absentRuleset, presentElements } from "../linux/present-pods.ts";
import { installRuleset, missingFromRuleset } from "../linux/rule-keeper.ts";
import { elementName, lackingElements, putElements, standingElements, takeElements } from "../linux/set-elements.ts";
import type { BridgeNetwork } from "./options.ts";
import { portRuleset } from "./port-rules.ts";

/** The addresses that a port's frames may come from. */
interface Identity {
  readonly mac: string;
  readonly ips: readonly Ip[];
}

export interface GuardedPod extends Identity {
  readonly owner: Owner;
  /** Index of the host's end. */
  readonly port: number;
}

/** A pod's elements in the sets of the port rules, and of the rules about present pods. */
interface PodElements {
  readonly port: readonly Element[];
  readonly node: readonly Element[];
}

/** The source of a host that does not use an address yet. */
const unspecified = ipOf(6, 0n);
const unspecifiedBytes = ipBytes(unspecified);

/**
 * The packet rules about one network's pods, with a copy of the pods in memory for frequent queries. The kernel's sets
 * hold them too, so that the next agent can read them.
 */
export class PortGuard {
  readonly #socket: NetlinkSocket;
  readonly #ports: ReturnType<typeof portRuleset>;
  readonly #absent: ReturnType<typeof absentRuleset>;
  readonly #isStanding: (port: number) => boolean;
  readonly #pods = new Map<number, GuardedPod>();
  /** Each pod's elements, cached because every check for problems needs them. */
  readonly #elementsOf = new WeakMap<GuardedPod, PodElements>();

  /**
   * @param socket for packet filters. Kept open, since closing it waits for its deletions.
   * @param isStanding whether the node has an interface of this index
   */
  constructor(socket: NetlinkSocket, network: BridgeNetwork, isStanding: (port: number) => boolean) {
    this.#socket = socket;
    this.#isStanding = isStanding;
    this.#ports = portRuleset(network.bridge);
    this.#absent = absentRuleset(network);
  }

  /** The pod that this agent has admitted at a port. */
  at(port: number): GuardedPod | undefined {
    return this.#pods.get(port);
  }

  /** The port that was last admitted for the owner. */
  portOf(owner: Owner): number | undefined {
    return [...this.#pods.values()].find((pod) => sameOwner(pod.owner, owner))?.port;
  }

  /** The identity that any agent has recorded for each port, which pods cannot change. @throws {NetlinkError} */
  standing(): ReadonlyMap<number, Identity> {
    const { pods4, pods6 } = this.#ports.sets;
    const found = new Map<number, Identity>();
    for (const { key } of standingElements(this.#socket, [pods4, pods6])) {
      const port = new DataView(key.buffer, key.byteOffset).getUint32(0, true);
      const mac = formatMac(key.subarray(4, 10));
      const ip = ipFromBytes(key.subarray(12));
      if (ip === undefined || sameIp(ip, unspecified) || sameIp(ip, linkLocalOf(mac))) continue;
      found.set(port, { mac, ips: [...(found.get(port)?.ips ?? []), ip] });
    }
    return found;
  }

  /** Guards exactly these ports. @throws {NetlinkError} */
  guard(pods: readonly GuardedPod[]): void {
    this.#pods.clear();
    for (const pod of pods) this.#pods.set(pod.port, pod);
    this.#installPorts();
  }

  /** Tells the node which addresses of its subnets are a pod's, in the table of the masquerade rules. @throws {NetlinkError} */
  announce(): void {
    installRuleset(this.#socket, this.#absent.ruleset, this.#all("node"));
  }

  /**
   * Allows a pod's frames at a port, before it is up: completely or, on failure, not at all. Deleted rules are
   * installed again.
   * @throws {NetlinkError | CniError} 102 where the MAC is another's
   */
  admit(pod: GuardedPod, bridge: { readonly name: string; readonly mac: string }): void {
    this.#refuseTaken(pod, bridge);
    const before = this.#pods.get(pod.port);
    this.#pods.set(pod.port, pod);
    try {
      this.#put(pod, before);
    } catch (caught) {
      if (before === undefined) this.#pods.delete(pod.port);
      else this.#pods.set(pod.port, before);
      throw caught;
    }
  }

  /** Forgets a port that is down or gone. @throws {NetlinkError} */
  dismiss(port: number): void {
    const pod = this.#pods.get(port);
    if (pod === undefined) return;
    this.#pods.delete(port);
    // A pod whose interface has gone without a DEL may have a successor with the same address.
    const others = [...this.#pods.values()];
    const absent = pod.ips.filter((ip) => !others.some(({ ips }) => ips.some((other) => sameIp(other, ip))));
    takeElements(this.#socket, [...this.#elements(pod).port, ...presentElements(this.#absent.sets, absent)]);
  }

  /** The identity behind a port, if all of its elements are in the kernel. @throws {NetlinkError} */
  guardedAt(port: number): Identity | undefined {
    const pod = this.#pods.get(port);
    // An agent that does not know the port yet uses what is in the kernel.
    if (pod === undefined) return this.standing().get(port);
    const { port: ofPort, node } = this.#elements(pod);
    return lackingElements(this.#socket, [...ofPort, ...node]).length === 0 ? pod : undefined;
  }

  /** What is not as it should be, in sentences. @throws {NetlinkError} */
  missing(): readonly string[] {
    return [
      ...missingFromRuleset(this.#socket, this.#ports.ruleset, this.#all("port")),
      ...missingFromRuleset(this.#socket, this.#absent.ruleset, this.#all("node")),
    ];
  }

  #put(pod: GuardedPod, before: GuardedPod | undefined): void {
    try {
      const { port, node } = this.#elements(pod);
      putElements(this.#socket, [...port, ...node]);
      if (before === undefined) return;
      const kept = new Set(port.map(elementName));
      takeElements(
        this.#socket,
        this.#elements(before).port.filter((element) => !kept.has(elementName(element))),
      );
    } catch (caught) {
      if (!isErrno(caught, Errno.ENOENT)) throw caught;
      this.#installPorts();
      this.announce();
    }
  }

  #installPorts(): void {
    installRuleset(this.#socket, this.#ports.ruleset, this.#all("port"));
  }

  /** Two pods with one MAC would receive each other's frames, and the bridge's MAC is the pods' gateway. */
  #refuseTaken({ port, mac }: GuardedPod, bridge: { readonly name: string; readonly mac: string }): void {
    for (const other of this.#pods.values()) {
      if (other.mac !== mac || other.port === port) continue;
      if (this.#isStanding(other.port)) throw taken(mac, `sandbox "${other.owner.sandboxId}"`);
      this.dismiss(other.port);
    }
    if (mac === bridge.mac) throw taken(mac, `the bridge "${bridge.name}"`);
  }

  #all(kind: keyof PodElements): readonly Element[] {
    return [...this.#pods.values()].flatMap((pod) => this.#elements(pod)[kind]);
  }

  #elements(pod: GuardedPod): PodElements {
    const known = this.#elementsOf.get(pod);
    if (known !== undefined) return known;
    const { ports, pods4, pods6 } = this.#ports.sets;
    const { port, mac, ips } = pod;
    const index = Uint8Array.of(port & 255, (port >>> 8) & 255, (port >>> 16) & 255, port >>> 24);
    const macBytes = parseMac(mac) ?? new Uint8Array(6);
    const from = joined([index, macBytes]);
    const own = ips.map((ip) => elementOf(ip.family === 4 ? pods4 : pods6, from, ipBytes(ip)));
    // Every kernel assigns a link-local address and probes it, also in pods with IPv4 alone.
    own.push(elementOf(pods6, from, linkLocalBytes(macBytes)), elementOf(pods6, from, unspecifiedBytes));
    // The port comes last, since the rules apply to it from then on.
    own.push({ set: ports, key: index });
    const elements = { port: own, node: presentElements(this.#absent.sets, ips) };
    this.#elementsOf.set(pod, elements);
    return elements;
  }
}

const taken = (mac: string, holder: string): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot use the hardware address "${mac}": ${holder} has it`);
