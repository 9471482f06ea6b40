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
  type NetlinkSocket,
} from "../../protocols/netlink/mod.ts";
import { linkLocalOf } from "../addresses.ts";
import { absentRuleset, presentElements } from "../linux/present-pods.ts";
import { installRuleset, missingFromRuleset } from "../linux/rule-keeper.ts";
import { elementName, lackingElements, putElements, standingElements, takeElements } from "../linux/set-elements.ts";
import type { BridgeNetwork } from "./options.ts";
import { portRuleset } from "./port-rules.ts";

/** Whom frames that come in by a port may be from. */
interface Identity {
  readonly mac: string;
  readonly ips: readonly Ip[];
}

export interface GuardedPod extends Identity {
  readonly owner: Owner;
  /** Index of the host's end. */
  readonly port: number;
}

/** Elements about one pod: of the port's rules, and of those by which the node knows who is present. */
interface PodElements {
  readonly port: readonly Element[];
  readonly node: readonly Element[];
}

/** Whoever does not use an address yet speaks from this one. */
const unspecified = ipOf(6, 0n);

/**
 * The packet rules about one network's pods, and which pods these are. That is remembered for what is asked again and
 * again; the kernel has it too, so that the next agent begins with it.
 */
export class PortGuard {
  readonly #socket: NetlinkSocket;
  readonly #ports: ReturnType<typeof portRuleset>;
  readonly #absent: ReturnType<typeof absentRuleset>;
  readonly #isStanding: (port: number) => boolean;
  readonly #pods = new Map<number, GuardedPod>();
  /** What they are in the kernel: asked for with every look for problems. */
  readonly #elementsOf = new WeakMap<GuardedPod, PodElements>();

  /**
   * @param socket for packet filters. Keep it: to close one waits for what it has deleted.
   * @param isStanding whether the node has an interface of this index
   */
  constructor(socket: NetlinkSocket, network: BridgeNetwork, isStanding: (port: number) => boolean) {
    this.#socket = socket;
    this.#isStanding = isStanding;
    this.#ports = portRuleset(network.bridge);
    this.#absent = absentRuleset(network);
  }

  /** What may come in by a port, as far as this agent has said it. */
  at(port: number): GuardedPod | undefined {
    return this.#pods.get(port);
  }

  /** The port that was last said to be the owner's. */
  portOf(owner: Owner): number | undefined {
    return [...this.#pods.values()].find((pod) => sameOwner(pod.owner, owner))?.port;
  }

  /** What any agent has said of each port: pods cannot change that. @throws {NetlinkError} */
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

  /** Guards these ports and no others, whatever has stood. @throws {NetlinkError} */
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
   * Says what may come in by a port, before it is up: all of it or, where the kernel refuses, nothing. Rules that
   * somebody has taken away come back.
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
    // One whose interface has gone without a DEL may have a successor that has its address already.
    const others = [...this.#pods.values()];
    const absent = pod.ips.filter((ip) => !others.some(({ ips }) => ips.some((other) => sameIp(other, ip))));
    takeElements(this.#socket, [...this.#elements(pod).port, ...presentElements(this.#absent.sets, absent)]);
  }

  /** Who is behind a port where everything about it is in the kernel. @throws {NetlinkError} */
  guardedAt(port: number): Identity | undefined {
    const pod = this.#pods.get(port);
    // An agent that has not looked yet goes by what it finds.
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

  /** Two of one MAC would take each other's frames, and the bridge's is that of the pods' gateway. */
  #refuseTaken({ port, mac }: GuardedPod, bridge: { readonly name: string; readonly mac: string }): void {
    for (const other of [...this.#pods.values()]) {
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
    const index = new Uint8Array(4);
    new DataView(index.buffer).setUint32(0, port, true);
    const macBytes = parseMac(mac) ?? new Uint8Array(6);
    // Every kernel gives its interfaces a link-local address, and asks whether it is free, also where pods have IPv4 alone.
    const own = [...ips, linkLocalOf(mac), unspecified].map((ip) =>
      elementOf(ip.family === 4 ? pods4 : pods6, index, macBytes, ipBytes(ip)),
    );
    // The port comes last: from then on nothing else gets in there.
    const elements = { port: [...own, elementOf(ports, index)], node: presentElements(this.#absent.sets, ips) };
    this.#elementsOf.set(pod, elements);
    return elements;
  }
}

const taken = (mac: string, holder: string): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot use the hardware address "${mac}": ${holder} has it`);
