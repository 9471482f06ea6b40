import type { ContainerKind } from "../../shared/cni/container-kind.ts";
import type { CniResult, Owner, Pod } from "../../shared/cni/types.ts";
import type { Cidr, Ip } from "../../shared/net/ip.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { AgentConfig } from "../config/agent-config.ts";

/** The container that a call is about: the sandbox itself, or on Windows also one that shares its network. */
export interface Container {
  readonly id: string;
  /** CNI_NETNS as it came; empty where a DEL came without. */
  readonly netns: string;
  readonly kind: ContainerKind;
}

/** A port of the node that leads into a pod (capability `portMappings`). */
export interface PortMapping {
  readonly hostPort: number;
  readonly containerPort: number;
  readonly protocol: "tcp" | "udp";
}

/** What a sandbox gets: the request of one ADD with the addresses that IPAM gave. */
export interface AttachRequest {
  readonly owner: Owner;
  readonly container: Container;
  readonly pod?: Pod;
  /** The IPAM result: addresses, gateways, routes, DNS; no interfaces. */
  readonly ipam: CniResult;
  /** `true` where the address is a lease of our own allocator, `false` where another IPAM plugin keeps it. */
  readonly ownLease: boolean;
  /** Bytes; absent: the data path's own. */
  readonly mtu?: number;
  /** Asked-for hardware address; absent: derived from the owner. */
  readonly mac?: string;
  /** Only asked of a data path that makes them itself. */
  readonly portMappings?: readonly PortMapping[];
}

/** An interface of ours that stands on the node now, read back from the kernel (or HNS) alone. */
export interface Attached {
  readonly owner: Owner;
  /** Name of the host's end. */
  readonly hostIfname: string;
  readonly ownLease: boolean;
}

/** An interface that ought to stand, and was lost without a DEL. */
export type Missing = Pick<Attached, "owner" | "ownLease">;

/** Something that keeps the data path from working, for STATUS and diagnostics. */
export interface Problem {
  /** 50: no ADD can work. 51: pods that run are limited too (specification 1.1.0, "STATUS"). */
  readonly code: 50 | 51;
  readonly message: string;
}

/** What a data path is made for. */
export interface DataPathNeeds {
  /** Its networks have their subnets, also where these come from a registry. */
  readonly config: AgentConfig;
  /** Where the node is one of many: `nodes` of the configuration. */
  readonly cluster?: Cluster;
  /** Which pod an attachment is of, as its lease says it. */
  podOf(owner: Owner): Pod | undefined;
  /** All of its addresses by our own allocator; none where that does not know all of them. */
  leasedTo(owner: Owner): readonly Ip[];
  /** Hears of interfaces that stand and that nobody wants any more: the janitor goes on with them. */
  needsCleanup(owner: Owner): void;
}

/**
 * How pods are wired: one implementation per folder below. Calls for one owner never overlap
 * (the agent's mutex sees to it); calls for different owners may.
 */
export interface DataPath extends AsyncDisposable {
  /** Sets up what the node needs (bridge, masquerade, forwarding). Repeatable; finishes what a killed call left half done. */
  start(): Promise<void>;
  /**
   * Wires the sandbox and answers the whole result: host interfaces and the sandbox's own, the addresses pointing
   * at the latter. The same request again gives the same answer and leaves what stands as it is. A workload container
   * joins the interface of its sandbox.
   * @throws {CniError} code 4 (namespace cannot be entered, or is the host's), 102 (an interface that is someone else's, kernel refusals)
   */
  attach(request: AttachRequest): Promise<CniResult>;
  /** Unwires; "is not there" is success, a namespace is not needed. When it answers, the address may be given to another. */
  detach(owner: Owner): Promise<void>;
  /**
   * Compares what stands with `prevResult`: link, MAC, addresses, routes, bridge port.
   * @param netns CNI_NETNS of the call
   * @throws {CniError} code 103 naming the first difference
   */
  check(owner: Owner, netns: string, prevResult: CniResult): Promise<void>;
  /** Every interface of ours, whatever its state. */
  list(): Promise<readonly Attached[]>;
  /** The addresses out of its network's subnets that stand in the owner's sandbox; none where there is no interface of ours. */
  addresses(owner: Owner): Promise<readonly Cidr[]>;
  /**
   * Addresses that stand on interfaces of others than `owner`, ours or not, as far as is known without a look: those
   * without a lease must not be given out.
   */
  addressesInUse(owner: Owner): readonly Ip[];
  /**
   * What others have taken away, or a restart of theirs, as far as is known without a look. Absent where an interface is
   * never lost alone: the kernel's go with their namespace.
   */
  missing?(): readonly Missing[];
  /**
   * Makes one of those again as it was, in its own sandbox, where that stands.
   * @param addresses that the owner has now; absent: another IPAM plugin knows them
   * @returns whether there was anything to do
   */
  remake?(missing: Missing, addresses: readonly Ip[] | undefined): Promise<boolean>;
  /** What is wrong now; nothing when ADD can work. */
  problems(): Promise<readonly Problem[]>;
  /**
   * What single pods or other nodes go without although ADD can work, in sentences. It looks at everything there is, so
   * it is for people, who ask seldom, and not for a runtime that polls.
   */
  degraded(): Promise<readonly string[]>;
  /**
   * Looks soon after something may have changed that `problems` speaks of, damped as `ReconcileLoop` is. Absent where nobody
   * says so.
   * @param look asks for problems, and mends
   */
  watch?(look: () => Promise<void>): AsyncDisposable;
}
