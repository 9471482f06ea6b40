import type { SwitchKind } from "../../../config/overlay-options.ts";
import type { Link } from "../../../protocols/netlink/mod.ts";
import { mismatch } from "../../linux/compare.ts";
import { linkGroup } from "../../linux/host-links.ts";
import type { HostPort } from "../../linux/host-port.ts";
import type { ConnectedPod, OverlayNode } from "../overlay-node.ts";

/** A host's end becomes a port of Open vSwitch once it is named, while the pod's end is set up. */
export function hostPort(
  node: Pick<OverlayNode, "connectPod" | "disconnectPod">,
  bridge: string,
  kind: SwitchKind,
  gateway: Pick<Link, "name" | "index">,
): HostPort {
  return {
    bridge: { name: bridge },
    gateway,
    master: 0,
    // ovs-vswitchd passes on what it reads: a packet without its checksum is dropped by connection tracking.
    finishesChecksums: kind === "system",
    group: kind === "system" ? linkGroup.inService : linkGroup.onSwitch,
    portOptions: () => [],
    connect: ({ name, index }, { owner, request, ipam }, mac) =>
      node.connectPod({
        owner,
        port: name,
        device: String(index),
        mac,
        ips: ipam.ips.map(({ address }) => address.ip),
        netns: request.container.netns,
        ownLease: request.ownLease,
        ...(request.pod === undefined ? {} : { pod: request.pod }),
      }),
    disconnect: ({ owner }) => node.disconnectPod(owner),
  };
}

/** The host's end: up, and a port that the switch has made of this very device. */
export function comparePort(link: Link, pod: ConnectedPod | undefined, bridge: string): void {
  const what = `the node's interface "${link.name}"`;
  if (!link.up) throw mismatch(what, "down", "up");
  if (pod === undefined || pod.port !== link.name) throw mismatch(what, "no port", `a port of the bridge "${bridge}"`);
  if (pod.device !== String(link.index)) throw mismatch(what, "another than the port was made of", "the same");
  if (pod.ofport === undefined) throw mismatch(what, `no port of the switch (${pod.problem ?? "not made yet"})`, "one");
}
