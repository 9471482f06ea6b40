import type { Logger } from "../../../shared/log.ts";
import { podMtu } from "../../config/pod-mtu.ts";
import type { DataPath } from "../datapath.ts";
import { OvsNode, type OvsNodeOptions, openDatabase, withCniErrors } from "../ovs/mod.ts";
import { AdapterWaiter } from "./adapter-waiter.ts";
import type { OverlaySide } from "./node-side.ts";
import type { HnsNetwork } from "./options.ts";
import { OverlayDataPath } from "./overlay-datapath.ts";
import { type HostRunner, startedPods } from "./windows-host/mod.ts";

/** Bytes that the node's card takes, as far as nobody says otherwise. */
const transportMtu = 1500;

export interface OverlayParts {
  readonly hns: DataPath;
  readonly network: HnsNetwork;
  readonly side: OverlaySide;
  readonly run: HostRunner;
  readonly logger: Logger;
  /** As the configuration and the cluster have it. */
  readonly ovs: Omit<OvsNodeOptions, "mtu" | "host" | "uplink" | "nodeAddresses">;
}

/** The data path of HNS with Open vSwitch as what forwards: the card is its uplink, the switch's adapter its own port. */
export function createOverlayDataPath({ hns, network, side, run, logger, ovs }: OverlayParts): DataPath {
  const mtuOn = (address: OvsNodeOptions["nodeAddresses"][number]): number =>
    network.mtu ?? podMtu(transportMtu, ovs.mode, ovs.tunnel.type, [address]);
  const host = side.hostNetworkOf(network);
  return new OverlayDataPath({
    hns,
    restoreHost: () => host.again(),
    requireSwitch: async () => {
      using database = openDatabase(ovs.database);
      await withCniErrors(() => database.ready());
    },
    openNode: () => {
      const { name, address } = side.cardOf(network);
      return new OvsNode({ ...ovs, uplink: name, nodeAddresses: [address], mtu: mtuOn(address), host });
    },
    waiterOn: (node) =>
      new AdapterWaiter({
        started: (ports) => startedPods(run, ports, mtuOn(side.cardOf(network).address)),
        connect: (pod) => node.connectPod({ ...pod, type: "internal" }, "later"),
        logger,
      }),
  });
}
