import type { Cidr } from "../../../shared/net/ip.ts";
import type { NodeRoute, RefusedRoute } from "../routes.ts";

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
