import type { Live } from "../../shared/async/live-value.ts";
import type { Cidr, Ip } from "../../shared/net/ip.ts";
import type { NodeEncryption } from "./node-encryption.ts";
import type { RegistryHealth } from "./registry-health.ts";

/** A node of the cluster, as every other one knows it. */
export interface ClusterNode {
  readonly name: string;
  /** Created once on the node's disk: another machine with the same name has another uid. */
  readonly uid: string;
  /** Where the others reach the node itself: one address per family at most. */
  readonly addresses: readonly Ip[];
  /** The MAC of the interface with these addresses, to which packets without a tunnel are sent on one link. */
  readonly mac?: string;
  /** The subnets of its pods: one block per family at most. */
  readonly subnets: readonly Cidr[];
  /** How it encrypts what it sends; absent: not at all. */
  readonly encryption?: NodeEncryption;
}

/** What a node says of itself when it joins. */
export type Registration = Omit<ClusterNode, "subnets">;

/** `ready`: the node was alive lately. `lost`: it was not, but keeps its subnet. */
export type NodeState = "ready" | "lost" | "unknown";

export interface ListedNode extends ClusterNode {
  readonly state: NodeState;
  /** An inconsistency of the record, in a sentence. */
  readonly problem?: string;
}

/** A followed value, which ends when it is disposed of. */
export interface Followed<T> extends Live<T>, AsyncDisposable {}

/**
 * Where the nodes of the cluster come from. One implementation per folder or file beside this one. Every call has a
 * deadline of its own, and names the registry in its errors.
 */
export interface NodeRegistry extends AsyncDisposable {
  /** For messages: `the etcd registry at …`. */
  readonly name: string;
  /** URLs of the registry's servers; absent if it has none. */
  readonly servers?: readonly string[];
  /** What does not work now, as reported by the registry's users. */
  readonly health: RegistryHealth;
  /**
   * Registers the node, and gives it its subnets if it has none. The same again answers the same; a node that moved
   * (another address or MAC, same uid) is updated.
   * @param claims whether a node without a record may get new subnets, which would not serve its running pods; default:
   * yes
   * @param preferred new subnets to choose if they are free, because pods of the node have addresses of them
   * @throws {CniError} 11 where the registry cannot be reached, 7 where the name is taken by another uid, 101 where no
   * subnet is free, or none is to be claimed
   */
  register(self: Registration, claims?: boolean, preferred?: readonly Cidr[]): Promise<ClusterNode>;
  /** Keeps saying that the registered node lives, until disposed. */
  keepAlive(self: ClusterNode): AsyncDisposable;
  /**
   * Takes a node out and frees its subnets. `false` where it was not there.
   * @param uid only if the node has it
   */
  release(name: string, uid?: string): Promise<boolean>;
  list(): Promise<readonly ListedNode[]>;
  /** The same with the registry's revision; absent if it has none. */
  listAt?(): Promise<{ readonly revision: number; readonly nodes: readonly ListedNode[] }>;
  /**
   * All nodes by name, this one too: a whole new map with every change. If two nodes claim the same, the first in the
   * map has had it longer. Reconnects and resumes by itself.
   */
  follow(): Followed<ReadonlyMap<string, ClusterNode>>;
  /** Permissions of this client that no node needs, in sentences; absent if the registry cannot tell. Never fails. */
  excessRights?(): Promise<readonly string[]>;
  /** VNIDs of projects; absent if this registry keeps none. */
  readonly tenants?: TenantRegistry;
}

/** VNIDs of projects (Kubernetes namespaces): 0 is privileged; others are from 10 to 2^24-1 (OpenShift SDN). */
export interface TenantRegistry {
  /** The project's VNID, allocated at the first call for it, for good; 0 for project `default`. @throws {CniError} 11, 101 where none is free */
  vnidOf(project: string): Promise<number>;
  /**
   * Gives the project the VNID of another, 0, or a new one of its own, and confirms it, since a person asked for it.
   */
  assign(project: string, to: { join: string } | "global" | "own"): Promise<number>;
  /** All projects, the oldest number first: a whole new map with every change. */
  follow(): Followed<ReadonlyMap<string, number>>;
  /**
   * The numbers that people have confirmed, kept where no node can write; absent if only people write the registry. As
   * `follow`.
   */
  followConfirmed?(): Followed<ReadonlyMap<string, number>>;
  /**
   * Confirms the number of the project and of all that share it; absent as above.
   * @throws {CniError} 7 where it has another
   */
  confirm?(project: string, vnid: number): Promise<void>;
}

/** Namespaces of Kubernetes (RFC 1123, a label): they go into keys, files and command lines. */
export const projectNameRule = 'at most 63 lower-case letters, digits and "-", a letter or digit at both ends';

export const isProjectName = (text: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);

/** Every other project uses services of this one; it is privileged until a person changes that. */
export const privilegedProject = "default";
