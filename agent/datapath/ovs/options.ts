import type { Live } from "../../../shared/async/live-value.ts";
import type { Owner, Pod } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import type { Cidr, Ip } from "../../../shared/net/ip.ts";
import type { ClusterNode, TenantRegistry } from "../../cluster/node-registry.ts";
import type { SwitchKind, TrafficMode, TunnelOptions } from "../../config/ovs-config.ts";
import type { HostNetwork } from "./host-network.ts";
import type { ServiceSource } from "./services/service.ts";

/** What both systems' parts of the switch are made of. */
interface SwitchOptions {
  /** As `parseAddress` of `agent/protocols/ovsdb` takes it. */
  readonly database: string;
  /** Where the bridge listens for OpenFlow, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly bridge: string;
  readonly kind: SwitchKind;
  readonly mode: TrafficMode;
  readonly tunnel: TunnelOptions;
  /** Name of the internal port that is the pods' gateway. */
  readonly gateway: string;
  /** The node's own interface, to be a port of the bridge. */
  readonly uplink?: string;
  /** This node's name among its peers. */
  readonly nodeName: string;
  readonly podSubnets: readonly Cidr[];
  readonly peers: Live<ReadonlyMap<string, ClusterNode>>;
  /** Ends with the node that it is given to. */
  readonly services: ServiceSource | undefined;
  /** The node's route to services. */
  readonly serviceCidrs: readonly Cidr[];
  /** Keeps projects apart; `undefined`: all pods reach each other. */
  readonly tenants: TenantRegistry | undefined;
  readonly logger: Logger;
}

/** Of the part that knows nothing of pods' interfaces, the same on both systems. */
export interface OvsNodeOptions extends SwitchOptions {
  /** With the length of their network's prefix; one per family at most. */
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes, of the gateway and of pods. */
  readonly mtu: number;
  readonly host: HostNetwork;
}

/** Of the whole data path on Linux. */
export interface OvsDataPathOptions extends SwitchOptions {
  /** `name` of the network configuration. */
  readonly network: string;
  /** Where the data path may note what it could not find again. */
  readonly dataDir: string;
  /** With the length of their network's prefix; one per family at most. */
  readonly nodeAddresses: readonly Cidr[];
  /** Bytes; absent: what the transport interface leaves after the tunnel's headers. */
  readonly mtu?: number;
  readonly masquerade: boolean;
  /** Which pod an attachment is of, where the database of the switch no longer says so. */
  podOf(owner: Owner): Pod | undefined;
  /** Where pods go under their own address; `undefined`: to the peers' subnets. */
  readonly clusterSubnets: readonly Cidr[] | undefined;
}

/** One pod's port to be made, and who it belongs to. */
export interface PodPort {
  readonly owner: Owner;
  /** Name of the interface on the node. */
  readonly port: string;
  readonly mac: string;
  readonly ips: readonly Ip[];
  readonly pod?: Pod;
  /** CNI_NETNS of the ADD. */
  readonly netns: string;
  readonly ownLease: boolean;
  /** Tells the device from an earlier one of its name, which the switch may hold still: its index. */
  readonly device?: string;
  /** `Interface.type`: `internal` where Open vSwitch makes the device itself; absent: a device that is there. */
  readonly type?: "internal";
}

/** Such a port as the database has it. */
export interface ConnectedPod extends PodPort {
  /** Absent while the switch has not made the port: `problem` says why where it tried. */
  readonly ofport?: number;
  readonly problem?: string;
}

/**
 * One node's bridge, gateway, tunnel, flows, peers and services, whoever makes the pods' interfaces: `OvsNode`. All of
 * it follows the database and the switch through restarts by itself.
 */
export interface OverlayNode extends AsyncDisposable {
  /** The ports that the database has for pods, before and after `start`. @throws {CniError} 11 where it cannot be reached */
  pods(): Promise<readonly ConnectedPod[]>;
  /** Bridge, ports, flows of what stands; ports whose owner `keep` does not know go. Repeatable. @throws {CniError} 11, 102 */
  start(keep: (pod: ConnectedPod) => boolean): Promise<void>;
  /**
   * Makes the pod's port and its flows, as often as it is called.
   * @param when `now`: answers when packets pass; `later`: once the database has the port, whose device may come later
   * @throws {CniError} 11 where database or switch cannot be reached, 102 where they refuse
   */
  connectPod(pod: PodPort, when?: "now" | "later"): Promise<void>;
  /** Flows first, then the port; "is not there" is success. What cannot be reached now is finished when it can. */
  disconnectPod(owner: Owner): Promise<void>;
  /** What keeps pods from being connected now, in sentences. */
  problems(): readonly string[];
  /** What single pods or other nodes lack, and what others have made of the switch: looks at all of it. Sentences. */
  shortcomings(): Promise<readonly string[]>;
}
