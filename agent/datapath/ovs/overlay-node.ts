import type { Owner, Pod } from "../../../shared/cni/types.ts";
import type { Cidr, Family, Ip } from "../../../shared/net/ip.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { AgentSamples } from "../../metrics/meter.ts";
import type { NodeRoute, RefusedRoute } from "../routes.ts";
import type { ServicePort } from "../services.ts";
import type { PacketTracing } from "../tracing.ts";

/** A pod's port to create, and its owner. */
export interface PodPort {
  readonly owner: Owner;
  /** Name of the interface on the node. */
  readonly port: string;
  readonly mac: string;
  readonly ips: readonly Ip[];
  readonly pod?: Pod;
  /** VNID of its project, if projects are isolated; set by the node once the port exists. */
  readonly vnid?: number;
  /** CNI_NETNS of the ADD. */
  readonly netns: string;
  readonly ownLease: boolean;
  /** The device's index, which distinguishes it from an earlier one of the same name that the switch may still hold. */
  readonly device?: string;
  /** `Interface.type`: `internal` if Open vSwitch creates the device itself; absent: an existing device. */
  readonly type?: "internal";
}

/** A pod's port as found in the database. */
export interface ConnectedPod extends PodPort {
  /** Absent while the switch has not made the port: `problem` says why where it tried. */
  readonly ofport?: number;
  readonly problem?: string;
}

/**
 * One node's bridge, gateway, tunnel, flows, peers and services, independent of how pods' interfaces are made
 * (`OvsNode`). It survives restarts of the database and the switch by itself.
 */
export interface OverlayNode extends AsyncDisposable {
  /** The ports that the database has for pods, before and after `start`. @throws {CniError} 11 where it cannot be reached */
  pods(): Promise<readonly ConnectedPod[]>;
  /**
   * Sets up the bridge, ports and flows of existing pods; removes ports that `keep` refuses. Repeatable.
   * @throws {CniError} 11, 102
   */
  start(keep: (pod: ConnectedPod) => boolean): Promise<void>;
  /**
   * Creates the pod's port and its flows. Repeatable.
   * @param when `now`: answers when packets pass; `later`: once the database has the port, whose device may come later
   * @throws {CniError} 11 where database or switch cannot be reached, 102 where they refuse
   */
  connectPod(pod: PodPort, when?: "now" | "later"): Promise<void>;
  /**
   * Flows first, then the port; "is not there" is success. If the database or the switch cannot be reached it is
   * finished later.
   */
  disconnectPod(owner: Owner): Promise<void>;
  /** What keeps pods from being connected now, in sentences. */
  problems(): readonly string[];
  /**
   * What single pods or other nodes lack, and changes that others have made to the switch, in sentences. Checks
   * everything.
   */
  degraded(): Promise<readonly string[]>;
  /** Tells a scrape of flows and connections. */
  measure(samples: AgentSamples): void;
  /** Absent: it follows no packets. */
  readonly tracing?: PacketTracing;
}

/** The pods' gateway, as an interface of the node. */
export interface Gateway {
  readonly name: string;
  readonly mac: string;
  /** The first address of each of the node's pod subnets. */
  readonly addresses: readonly Cidr[];
  /** Bytes. */
  readonly mtu: number;
}

/** What the node itself and others ask services for, at other addresses than cluster IPs. */
export interface ServiceWays {
  readonly nodePorts: readonly Omit<ServiceWay, "ip">[];
  /** External IPs and those of load balancers. */
  readonly ips: readonly Ip[];
  /** Where nobody is to answer: without an address at node ports. */
  readonly refused: readonly ServiceWay[];
}

export interface ServiceWay {
  readonly family: Family;
  readonly protocol: ServicePort["protocol"];
  readonly ip?: Ip;
  readonly port: number;
}

/** What keeps packets from being encrypted, in sentences. */
export interface Encrypted {
  /** Of other nodes: only a change there helps, which is heard of. */
  readonly strangers: readonly string[];
  /** Of this node, for all others: to be tried again. */
  readonly failure?: string;
}

/** The system's own network, as far as the overlay needs it: one implementation per system. Every call may be repeated. */
export interface HostNetwork {
  /** The hardware address of the node's own interface, before it becomes the uplink. @throws {CniError} */
  macOf(uplink: string): Promise<string>;
  /** Whether the system has an interface of the name. @throws {CniError} */
  hasInterface(name: string): Promise<boolean>;
  /**
   * Gives the gateway port its addresses, once it is on the bridge, and turns forwarding on for it.
   * @throws {CniError}
   */
  useGateway(gateway: Gateway): Promise<void>;
  /**
   * Moves the node's addresses and routes from the bridge's own port back to its uplink. After a kill at any point the
   * next call finishes it.
   * @throws {CniError}
   */
  moveAddresses(from: string, to: string): Promise<void>;
  /**
   * Moves the node's addresses and routes from the uplink to the bridge's own port and records them; those that were
   * lost with an earlier bridge in this boot are restored. After a kill at any point the next call finishes it.
   * @throws {CniError}
   */
  keepAddresses(uplink: string, bridge: string): Promise<void>;
  /**
   * Tells the system which interfaces are ports of a user space switch, so that its own network stack accepts only
   * packets for their own addresses.
   * @throws {CniError}
   */
  leaveToSwitch(names: readonly string[]): Promise<void>;
  /**
   * Sets exactly these routes and removes others of ours, also of earlier agents.
   * @param keptVia routes by these next hops stay, whether they are wanted or not
   * @returns refused routes, which do not affect the others
   * @throws {CniError}
   */
  setRoutes(routes: readonly NodeRoute[], keptVia?: readonly Ip[]): Promise<readonly RefusedRoute[]>;
  /**
   * Has what goes to these nodes' pods encrypted, before there are routes. Absent: nothing is.
   * @returns as far as that is not so; packets stay where they are then
   */
  encrypt?(nodes: Iterable<ClusterNode>): Promise<Encrypted>;
  /**
   * Whether a switch in user space sends past the system's network by one of these interfaces of its bridges, and so
   * past what encrypts. Absent: it does.
   * @throws {CniError}
   */
  leadPastKernel?(interfaces: readonly string[]): Promise<boolean>;
  /** The node's own addresses at which it can be asked for node ports; never loopback. @throws {CniError} */
  ownAddresses(): Promise<readonly Ip[]>;
  /**
   * Gives to the bridge what is for node ports, and refuses what nobody is to answer. Absent: the system's own network
   * cannot, so that node ports answer pods alone.
   * @throws {CniError}
   */
  serve?(ways: Pick<ServiceWays, "nodePorts" | "refused">): Promise<void>;
}
