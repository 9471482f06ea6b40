import type { Owner, Pod } from "../../../shared/cni/types.ts";
import type { Cidr, Ip } from "../../../shared/net/ip.ts";
import type { NodeRoute, RefusedRoute } from "../routes.ts";

/** One pod's port to be made, and who it belongs to. */
export interface PodPort {
  readonly owner: Owner;
  /** Name of the interface on the node. */
  readonly port: string;
  readonly mac: string;
  readonly ips: readonly Ip[];
  readonly pod?: Pod;
  /** VNID of its project, where projects are kept apart: the node knows it, and tells it of pods that have their port. */
  readonly vnid?: number;
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
  degraded(): Promise<readonly string[]>;
}

/** The pods' gateway, as it is to stand in the system's network. */
export interface Gateway {
  readonly name: string;
  readonly mac: string;
  /** The first address of each of the node's pod subnets. */
  readonly addresses: readonly Cidr[];
  /** Bytes. */
  readonly mtu: number;
}

/** The system's own network, as far as the overlay needs it: one implementation per system. Every call may be repeated. */
export interface HostNetwork {
  /** The hardware address of the node's own interface, before it becomes the uplink. @throws {CniError} */
  macOf(uplink: string): Promise<string>;
  /** Whether the system has an interface of the name. @throws {CniError} */
  hasInterface(name: string): Promise<boolean>;
  /** The gateway port stands on the bridge: gives it its addresses, and has the node forward for it. @throws {CniError} */
  useGateway(gateway: Gateway): Promise<void>;
  /**
   * Gives the node's addresses and routes back, from the bridge's own port to the interface that was its uplink. Killed
   * at any point, the next call finishes it.
   * @throws {CniError}
   */
  moveAddresses(from: string, to: string): Promise<void>;
  /**
   * Has the node's addresses and routes on the bridge's own port, taken from the uplink once that is a port of the bridge,
   * and notes them: those that went with an earlier bridge in this boot of the system come back. Killed at any point, the
   * next call finishes it.
   * @throws {CniError}
   */
  keepAddresses(uplink: string, bridge: string): Promise<void>;
  /**
   * These interfaces are ports of a switch in user space, which reads them beside the system's network: that makes nothing
   * of what comes in by them for other addresses than theirs.
   * @throws {CniError}
   */
  leaveToSwitch(names: readonly string[]): Promise<void>;
  /**
   * Has exactly these routes, and no other of ours, an earlier agent's included.
   * @returns those that the system refuses, which cost the others nothing
   * @throws {CniError}
   */
  setRoutes(routes: readonly NodeRoute[]): Promise<readonly RefusedRoute[]>;
}
