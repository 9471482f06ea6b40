import { formatIp, type Ip, sameIp } from "../../../shared/ip.ts";
import { formatMac } from "../../../shared/mac.ts";
import { type Link, listPortMacs, readPortMac } from "../../netlink/mod.ts";
import { gatewayAddress } from "../gateway-address.ts";
import type { Attachment, PodPairs } from "../veth/pod-pairs.ts";
import type { BridgeDataPathOptions, BridgeNetwork } from "./options.ts";
import type { GuardedPod, PortGuard } from "./port-guard.ts";

/** MACs that are declared on the bridge's ports, by the ports' indexes. @throws {NetlinkError} */
export function declaredMacs({ tools }: PodPairs, bridge: Link): ReadonlyMap<number, string> {
  const entries = tools.socket.dump(listPortMacs(bridge.index), readPortMac);
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
  const strangers: Attachment[] = [];
  for (const attachment of pairs.attachments((name) => name === network.name)) {
    const { alias, link } = attachment;
    const { owner } = alias;
    const before = guard.at(link.index) ?? admitted.get(link.index);
    const leased = alias.ownLease ? leasedTo(owner) : [];
    const mac = before?.mac ?? declared.get(link.index) ?? pairs.podMac(link);
    const ips = guard.at(link.index)?.ips ?? (leased.length > 0 ? leased : before?.ips);
    if (mac === undefined) continue;
    if (ips === undefined) strangers.push(attachment);
    else known.push({ owner, port: link.index, mac, ips });
  }
  const taken = new Set([
    ...known.flatMap(({ ips }) => ips.map(formatIp)),
    ...network.subnets.map((subnet) => formatIp(gatewayAddress(subnet).ip)),
  ]);
  for (const { alias, link } of strangers) {
    const { owner } = alias;
    const mac = declared.get(link.index) ?? pairs.podMac(link);
    if (mac === undefined) continue;
    const own = pairs.addresses(owner, network).map(({ ip }) => ip);
    const ips = own.filter((ip: Ip) => !taken.has(formatIp(ip)));
    for (const ip of ips) taken.add(formatIp(ip));
    known.push({ owner, port: link.index, mac, ips: ips.filter((ip, i) => ips.findIndex((o) => sameIp(o, ip)) === i) });
  }
  return known;
}
