import { formatIp } from "../../../shared/net/ip.ts";
import { formatMac } from "../../../shared/net/mac.ts";
import { type Link, listPortMacs, readPortMac } from "../../protocols/netlink/mod.ts";
import { gatewayAddress } from "../addresses.ts";
import { ifStillThere } from "../linux/host-links.ts";
import type { PodPairs } from "../linux/pod-pairs.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";
import type { GuardedPod, PortGuard } from "./port-guard.ts";

/** MACs that are declared on the bridge's ports, by the ports' indexes; none where the bridge has gone since. @throws {NetlinkError} */
export function declaredMacs({ tools }: PodPairs, bridge: Link): ReadonlyMap<number, string> {
  const entries = ifStillThere(() => tools.socket.dump(listPortMacs(bridge.index), readPortMac)) ?? [];
  return new Map(entries.map(([port, mac]) => [port, formatMac(mac)]));
}

/**
 * Who is behind each port that stands. What this agent knows counts first, then the lease, then what an earlier agent has
 * left in the kernel: none of it can be changed by a pod. Only a pod that an earlier release has wired is asked itself.
 * @throws {NetlinkError}
 */
export function standingPods(
  pairs: PodPairs,
  guard: PortGuard,
  network: BridgeNetwork,
  bridge: Link,
  leasedTo: BridgeDataPathOptions["leasedTo"],
): readonly GuardedPod[] {
  const admitted = guard.standing();
  const declared = declaredMacs(pairs, bridge);
  const known: GuardedPod[] = [];
  const strangers: Omit<GuardedPod, "ips">[] = [];
  for (const { alias, link } of pairs.attachments((name) => name === network.name)) {
    const { owner, ownLease } = alias;
    const port = link.index;
    const before = guard.at(port) ?? admitted.get(port);
    const mac = before?.mac ?? declared.get(port) ?? pairs.podMac(link);
    // Nobody is behind it any more.
    if (mac === undefined) continue;
    const leased = ownLease ? leasedTo(owner) : [];
    const ips = guard.at(port)?.ips ?? (leased.length > 0 ? leased : before?.ips);
    if (ips === undefined) strangers.push({ owner, port, mac });
    else known.push({ owner, port, mac, ips });
  }
  const gateways = network.subnets.map((subnet) => gatewayAddress(subnet).ip);
  const taken = new Set([...known.flatMap(({ ips }) => ips), ...gateways].map(formatIp));
  for (const stranger of strangers) {
    const own = pairs.addresses(stranger.owner, network).map(({ ip }) => ip);
    const ips = own.filter((ip) => !taken.has(formatIp(ip)));
    for (const ip of ips) taken.add(formatIp(ip));
    known.push({ ...stranger, ips });
  }
  return known;
}
