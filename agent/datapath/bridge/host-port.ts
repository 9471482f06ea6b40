import { addPortMac, type Link, type Message, setPodPort } from "../../protocols/netlink/mod.ts";
import { mismatch } from "../linux/compare.ts";
import { linkGroup } from "../linux/host-links.ts";
import type { HostPort } from "../linux/host-port.ts";
import type { BridgePolicies } from "./policies/bridge-policies.ts";
import type { PolicedPod } from "./policies/policy-program.ts";
import type { GuardedPod, PortGuard } from "./port-guard.ts";

/** The settings that a bridge port of a pod needs. */
export function podPort({ name, index }: Link, mac: Uint8Array, hairpin: boolean): readonly Message[] {
  // The MAC first: from then on the bridge neither learns it from nor floods it to another port.
  return [addPortMac(name, index, mac), setPodPort(name, index, { hairpin })];
}

/** A host end is created as a port of the bridge, in one request to the kernel. */
export function bridgePort(bridge: Link, hairpin: boolean, guard: PortGuard, policies: BridgePolicies): HostPort {
  return {
    bridge: { name: bridge.name, mac: bridge.mac },
    gateway: bridge,
    master: bridge.index,
    finishesChecksums: true,
    group: linkGroup.inService,
    portOptions: (host, podMac) => podPort(host, podMac, hairpin),
    guard: {
      macOf: ({ index }) => guard.at(index)?.mac,
      admit: ({ index }, { owner, ipam }, mac) => {
        const ips = ipam.ips.map(({ address }) => address.ip);
        // Its first packet must meet the rules.
        policies.admit(policedPod({ owner, port: index, mac, ips }, bridge));
        guard.admit({ owner, port: index, mac, ips }, bridge);
      },
      dismiss: ({ index }) => {
        const owner = guard.at(index)?.owner;
        guard.dismiss(index);
        if (owner !== undefined) policies.dismiss(owner);
      },
    },
  };
}

/** A pod as policies know it. */
export const policedPod = ({ owner, port, mac, ips }: GuardedPod, { name }: Pick<Link, "name">): PolicedPod => ({
  owner,
  port,
  mac,
  ips,
  bridge: name,
});

/** Whether a host end has the settings of `podPort`; declared MACs are checked at the bridge. */
export const isPodPort = (host: Link, bridge: Link, hairpin: boolean): boolean =>
  host.master === bridge.index && host.hairpin === hairpin && !host.learning;

/** The host's end: up and a port of the bridge. */
export function compareHostEnd(link: Link, bridge: Link): void {
  const what = `the node's interface "${link.name}"`;
  if (!link.up) throw mismatch(what, "down", "up");
  if (link.master !== bridge.index) {
    const is = link.master === 0 ? "no bridge port" : `a port of interface ${link.master}`;
    throw mismatch(what, is, `a port of the bridge "${bridge.name}"`);
  }
}
