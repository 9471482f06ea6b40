import { type Link, type Message, setHairpin } from "../../netlink/mod.ts";
import type { HostSide } from "../veth/host-side.ts";

/** A host's end is made a port of the bridge with its creation: one request of the kernel does it all. */
export function bridgeSide(bridge: Link, hairpin: boolean): HostSide {
  return {
    bridge: { name: bridge.name, mac: bridge.mac },
    gateway: bridge,
    master: bridge.index,
    finishesChecksums: true,
    portOptions: ({ name, index }): readonly Message[] => [setHairpin(name, index, hairpin)],
    isPort: (host) => host.master === bridge.index && host.hairpin === hairpin,
  };
}
