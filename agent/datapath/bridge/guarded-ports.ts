import type { Owner } from "../../../shared/cni/types.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { formatMac, parseMac } from "../../../shared/net/mac.ts";
import { type Link, listPortMacs, type NetlinkSocket, readPortMac, setLink } from "../../protocols/netlink/mod.ts";
import { gatewayAddress } from "../addresses.ts";
import { mismatch } from "../linux/compare.ts";
import { findLink, linkGroup, portsOf, undefinedIfGone } from "../linux/host-links.ts";
import type { HostPort } from "../linux/host-port.ts";
import { interfaceError } from "../linux/kernel-errors.ts";
import type { Attachment, PodPairs } from "../linux/pod-pairs.ts";
import { bridgePort, isPodPort, podPort, policedPod } from "./host-port.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";
import type { BridgePolicies } from "./policies/bridge-policies.ts";
import { type GuardedPod, PortGuard } from "./port-guard.ts";

/** The ports of one network's pods: keeps them on the bridge, and lets only the pods' own frames in. */
export class GuardedPorts {
  readonly #network: BridgeNetwork;
  readonly #pairs: PodPairs;
  readonly #guard: PortGuard;
  readonly #policies: BridgePolicies;
  readonly #leasedTo: BridgeDataPathOptions["leasedTo"];

  /** @param filters socket for packet filters, which lives as long */
  constructor(
    network: BridgeNetwork,
    pairs: PodPairs,
    filters: NetlinkSocket,
    policies: BridgePolicies,
    leasedTo: BridgeDataPathOptions["leasedTo"],
  ) {
    const { socket } = pairs.tools;
    this.#policies = policies;
    this.#network = network;
    this.#pairs = pairs;
    this.#guard = new PortGuard(filters, network, (index) => findLink(socket, { index }) !== undefined);
    this.#leasedTo = leasedTo;
  }

  /** Whether a pod is behind an interface, as far as this agent knows. */
  isGuarded(index: number): boolean {
    return this.#guard.at(index) !== undefined;
  }

  /** The bridge as the `HostPort` of pods' host ends. */
  hostPort(bridge: Link): HostPort {
    return bridgePort(bridge, this.#network.hairpin, this.#guard, this.#policies);
  }

  /**
   * Guards all existing ports.
   * @returns whether they are. Without packet rules no port is set up, no pod is attached, and `missing` reports it.
   */
  restore(bridge: Link): boolean {
    return this.#orLog(`set up the packet rules of the bridge "${bridge.name}"`, () => {
      const pods = standingPods(this.#pairs, this.#guard, this.#network, bridge, this.#leasedTo);
      this.#policies.restore(pods.map((pod) => policedPod(pod, bridge)));
      this.#guard.guard(pods);
    });
  }

  /** Returns ports to their bridge that somebody has taken off, or that were on an earlier bridge. */
  putBack(bridge: Link): void {
    const { hairpin } = this.#network;
    const { socket, logger } = this.#pairs.tools;
    const declared = declaredMacs(this.#pairs, bridge);
    for (const { link } of this.#attachments()) {
      const { name, index } = link;
      const mac = this.#guard.at(index)?.mac;
      const bytes = parseMac(mac ?? "");
      // The pod of this port has gone.
      if (bytes === undefined) continue;
      if (link.up && isPodPort(link, bridge, hairpin) && declared.get(index) === mac) continue;
      const refusals = socket.batch([
        setLink(name, index, { master: bridge.index }),
        ...podPort(link, bytes, hairpin),
        setLink(name, index, { up: true }),
      ]);
      const refusal = refusals.find((one) => one !== undefined);
      if (refusal === undefined || findLink(socket, { index }) === undefined) continue;
      // Other pods are still handled; CHECK reports this one.
      logger.error("cannot put a pod back on its bridge", { error: refusal.message });
    }
  }

  /** To be called after the masquerade rules are installed, because the elements lie in their table. */
  announce(): void {
    this.#orLog(`tell the node which addresses are pods' of the bridge "${this.#network.bridge}"`, () =>
      this.#guard.announce(),
    );
  }

  /**
   * If an element stays, it names a port that is down or gone, so it is harmless.
   * @param link its host's end, if it was there
   */
  dismiss(owner: Owner, link: Link | undefined): void {
    const port = link?.index ?? this.#guard.portOf(owner);
    if (port !== undefined) this.#orLog("forget a pod's port", () => this.#guard.dismiss(port));
    this.#orLog("forget a pod's addresses", () => this.#policies.dismiss(owner));
  }

  /** The hardware address that the pod at this port has to have. */
  macAt(port: number): string | undefined {
    return this.#guard.at(port)?.mac;
  }

  /** @throws {CniError} code 103 if the rules of a port are incomplete */
  compare(bridge: Link, { name, index }: Link): void {
    const pod = this.#guard.guardedAt(index);
    if (pod === undefined) throw mismatch(`the packet rules about "${name}"`, "not whole", "as ADD made them");
    if (declaredMacs(this.#pairs, bridge).get(index) === pod.mac) return;
    throw mismatch(
      `the pod's hardware address at the port "${name}"`,
      "missing",
      `"${pod.mac}" declared on the bridge`,
    );
  }

  /** What of packet rules and declared MACs is missing now, in sentences. @param attachments of this network */
  missing(attachments: readonly Attachment[]): readonly string[] {
    const missing = this.#guard.missing();
    const bridge = findLink(this.#pairs.tools.socket, { name: this.#network.bridge });
    if (bridge === undefined) return missing;
    const declared = declaredMacs(this.#pairs, bridge);
    const guarded = attachments.filter(({ link: { index } }) => this.isGuarded(index));
    const links = guarded.map(({ link }) => link);
    const down = links.filter((link) => !link.up && this.#stands(link, (now) => !now.up));
    const isOff = ({ master }: Link): boolean => master !== bridge.index;
    const off = links.filter((link) => isOff(link) && this.#stands(link, isOff));
    const open = links.filter((link) => {
      if (off.includes(link)) return false;
      return declared.get(link.index) !== this.#guard.at(link.index)?.mac && this.#stands(link);
    });
    const are = open.length === 1 ? "port is without its pod's" : "ports are without their pods'";
    return [
      ...missing,
      ...(down.length === 0 ? [] : [`${portsOf(down)} down`]),
      ...(off.length === 0 ? [] : [`${portsOf(off)} off the bridge "${bridge.name}"`]),
      ...(open.length === 0 ? [] : [`${open.length} ${are} hardware address on the bridge "${bridge.name}"`]),
    ];
  }

  /** Interfaces that came or went since the attachments were listed are not reported. */
  #stands({ index }: Link, isSo: (link: Link) => boolean = () => true): boolean {
    const now = findLink(this.#pairs.tools.socket, { index });
    return now !== undefined && now.group === linkGroup.inService && isSo(now);
  }

  #attachments(): readonly Attachment[] {
    return this.#pairs.attachments((name) => name === this.#network.name);
  }

  /** A failure is logged and does not stop the rest. */
  #orLog(action: string, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (caught) {
      this.#pairs.tools.logger.error(interfaceError(action, caught).message);
      return false;
    }
  }
}

/** MACs that are declared on the bridge's ports, by the ports' indexes; none where the bridge has gone since. @throws {NetlinkError} */
export function declaredMacs({ tools }: PodPairs, bridge: Link): ReadonlyMap<number, string> {
  const entries = undefinedIfGone(() => tools.socket.dump(listPortMacs(bridge.index), readPortMac)) ?? [];
  return new Map(entries.map(([port, mac]) => [port, formatMac(mac)]));
}

/**
 * The identity of the pod behind each existing port, from this agent's memory, then from the lease, then from an
 * earlier agent's elements in the kernel, none of which a pod can change. Only for a pod of an earlier release its own
 * interface is read.
 * @throws {NetlinkError}
 */
function standingPods(
  pairs: PodPairs,
  guard: PortGuard,
  network: BridgeNetwork,
  bridge: Link,
  leasedTo: BridgeDataPathOptions["leasedTo"],
): readonly GuardedPod[] {
  const admitted = guard.standing();
  const declared = declaredMacs(pairs, bridge);
  const known: GuardedPod[] = [];
  const unknown: Omit<GuardedPod, "ips">[] = [];
  for (const { alias, link } of pairs.attachments((name) => name === network.name)) {
    const { owner, ownLease } = alias;
    const port = link.index;
    const before = guard.at(port) ?? admitted.get(port);
    const mac = before?.mac ?? declared.get(port) ?? pairs.podMac(link);
    // The pod of this port has gone.
    if (mac === undefined) continue;
    const leased = ownLease ? leasedTo(owner) : [];
    const ips = guard.at(port)?.ips ?? (leased.length > 0 ? leased : before?.ips);
    if (ips === undefined) unknown.push({ owner, port, mac });
    else known.push({ owner, port, mac, ips });
  }
  const gateways = network.subnets.map((subnet) => gatewayAddress(subnet).ip);
  const taken = new Set([...known.flatMap(({ ips }) => ips), ...gateways].map(formatIp));
  for (const pod of unknown) {
    const own = pairs.addresses(pod.owner, network).map(({ ip }) => ip);
    const ips = own.filter((ip) => !taken.has(formatIp(ip)));
    for (const ip of ips) taken.add(formatIp(ip));
    known.push({ ...pod, ips });
  }
  return known;
}
