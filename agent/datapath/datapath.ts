import type { ContainerKind } from "../../shared/cni/container-kind.ts";
import type { CniResult, Owner, Pod } from "../../shared/cni/types.ts";
import type { Cidr, Ip } from "../../shared/net/ip.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import type { CallPhases } from "../metrics/call-phases.ts";
import type { AgentSamples } from "../metrics/meter.ts";
import type { PolicyEnforcement } from "./policies.ts";
import type { ServiceProxy } from "./services.ts";
import type { PacketTracing } from "./tracing.ts";

/** The container that a call is about: the sandbox itself, or on Windows also one that shares its network. */
export interface Container {
  readonly id: string;
  /** CNI_NETNS as given; may be empty for a DEL. */
  readonly netns: string;
  readonly kind: ContainerKind;
}

/** A port of the node that leads into a pod (capability `portMappings`). */
export interface PortMapping {
  readonly hostPort: number;
  readonly containerPort: number;
  readonly protocol: "tcp" | "udp";
}

/** The request of one ADD with the addresses from IPAM. */
export interface AttachRequest {
  readonly owner: Owner;
  readonly container: Container;
  readonly pod?: Pod | undefined;
  /** The IPAM result: addresses, gateways, routes, DNS; no interfaces. */
  readonly ipam: CniResult;
  /** `true` where the address is a lease of our own allocator, `false` where another IPAM plugin keeps it. */
  readonly ownLease: boolean;
  /** Bytes; absent: the data path's own. */
  readonly mtu?: number | undefined;
  /** Asked-for hardware address; absent: derived from the owner. */
  readonly mac?: string | undefined;
  /** Only for a data path that maps ports itself. */
  readonly portMappings?: readonly PortMapping[] | undefined;
  /** Told of the parts of the work as they begin; the first is "interface". */
  readonly phases?: Pick<CallPhases, "enter">;
}

/** An existing interface of ours, as read from the kernel (or HNS) alone. */
export interface Attached {
  readonly owner: Owner;
  /** Name of the host's end. */
  readonly hostIfname: string;
  readonly ownLease: boolean;
  /** The pod's hardware address, and the number of its port, as far as they are known without a query. */
  readonly mac?: string;
  readonly port?: number;
}

/** An interface that was lost without a DEL. */
export type Missing = Pick<Attached, "owner" | "ownLease">;

/** Something that keeps the data path from working, for STATUS and diagnostics. */
export interface Problem {
  /** 50: no ADD can work. 51: pods that run are limited too (specification 1.1.0, "STATUS"). */
  readonly code: 50 | 51;
  readonly message: string;
}

/** What a data path needs from the agent. */
export interface DataPathNeeds {
  /** The configuration with its networks' subnets, also if these come from a registry. */
  readonly config: AgentConfig;
  /** Where the node is one of many: `nodes` of the configuration. */
  readonly cluster?: Cluster;
  /** The pod of an attachment, from its lease. */
  podOf(owner: Owner): Pod | undefined;
  /** All of the owner's addresses from our allocator; none if it does not know all of them. */
  leasedTo(owner: Owner): readonly Ip[];
  /** Called with interfaces that exist although their owner has left; the janitor removes them. */
  needsCleanup(owner: Owner): void;
  /** Called with what the data path lives on and does not end itself: it ends with the agent, after the data path. */
  keep(resource: AsyncDisposable): void;
}

/**
 * How pods are wired: one implementation per folder below. Calls for one owner never overlap
 * (the agent's mutex sees to it); calls for different owners may.
 */
export interface DataPath extends AsyncDisposable {
  /** Sets up what the node needs (bridge, masquerade, forwarding). Repeatable; finishes what a killed call left half done. */
  start(): Promise<void>;
  /**
   * Wires the sandbox and answers the complete result: host interfaces and the sandbox's own, to which the addresses
   * belong. The same request again gives the same answer and changes nothing. A workload container joins the interface
   * of its sandbox.
   * @throws {CniError} code 4 (namespace cannot be entered, or is the host's), 102 (an interface that is someone
   * else's, kernel refusals)
   */
  attach(request: AttachRequest): Promise<CniResult>;
  /**
   * Removes the attachment; a missing one is success, and no namespace is needed. After it has answered, the address
   * may be given to another pod.
   */
  detach(owner: Owner): Promise<void>;
  /**
   * Compares the node's state with `prevResult`: link, MAC, addresses, routes, bridge port.
   * @param netns CNI_NETNS of the call
   * @throws {CniError} code 103 naming the first difference
   */
  check(owner: Owner, netns: string, prevResult: CniResult): Promise<void>;
  /** Every interface of ours, whatever its state. */
  list(): Promise<readonly Attached[]>;
  /** The addresses of the network's subnets in the owner's sandbox; none if there is no interface of ours. */
  addresses(owner: Owner): Promise<readonly Cidr[]>;
  /**
   * Addresses on interfaces of others than `owner`, ours or not, as far as known without a query: they must not be
   * given out, even without a lease.
   */
  addressesInUse(owner: Owner): readonly Ip[];
  /**
   * Lost interfaces, as far as known without a query. Absent for data paths whose interfaces are never lost alone,
   * since the kernel's go with their namespace.
   */
  missing?(): readonly Missing[];
  /**
   * Creates one of those again as it was, if its sandbox still exists.
   * @param addresses that the owner has now; absent: another IPAM plugin knows them
   * @returns whether there was anything to do
   */
  remake?(missing: Missing, addresses: readonly Ip[] | undefined): Promise<boolean>;
  /** What is wrong now; nothing when ADD can work. */
  problems(): Promise<readonly Problem[]>;
  /**
   * What is missing for single pods or other nodes although ADD can work, in sentences. It checks everything, so it is
   * for people, who ask seldom, and not for a runtime that polls.
   */
  degraded(): Promise<readonly string[]>;
  /**
   * Calls `look` soon after a change that may concern `problems`, damped like `ReconcileLoop`. Absent if the data path
   * gets no notice of changes.
   * @param look checks for problems and repairs them
   */
  watch?(look: () => Promise<void>): AsyncDisposable;
  /**
   * Calls `tell` with what keeps other nodes' pods from being reached, as long as that is so: for events. Absent if the
   * data path does not look for such.
   */
  tellTroubles?(tell: (trouble: string) => void): void;
  /** Bytes of the largest packet between pods of different nodes, as they are made now; absent: it is not known. */
  readonly podMtu?: number;
  /** Tells a scrape what only this data path has. */
  measure?(samples: AgentSamples): void;
  /** Absent: this data path enforces no network policies. */
  readonly policies?: PolicyEnforcement;
  /** Absent: this data path balances no services. */
  readonly services?: ServiceProxy;
  /** Absent: this data path follows no packets, or not yet. */
  readonly tracing?: PacketTracing | undefined;
}
