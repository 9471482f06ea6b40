import type { Live } from "../../shared/async/live-value.ts";
import type { Cidr, Ip } from "../../shared/net/ip.ts";
import type { RegistryHealth } from "./registry-health.ts";

/** A node of the cluster, as every other one knows it. */
export interface ClusterNode {
  readonly name: string;
  /** Made once on the node's disk: another machine that took the name has another. */
  readonly uid: string;
  /** Where the others reach the node itself: one address per family at most. */
  readonly addresses: readonly Ip[];
  /** Of the interface that holds these addresses; what packets without tunnel are sent to on one link. */
  readonly mac?: string;
  /** Of its pods: one block per family at most. */
  readonly subnets: readonly Cidr[];
}

/** What a node says of itself when it joins. */
export type Registration = Omit<ClusterNode, "subnets">;

/** `ready`: the node was heard of lately. `lost`: it keeps its subnet all the same. */
export type NodeState = "ready" | "lost" | "unknown";

export interface ListedNode extends ClusterNode {
  readonly state: NodeState;
  /** What does not fit together in the registry, in a sentence. */
  readonly problem?: string;
}

/** What is followed until it is disposed. */
export interface Followed<T> extends Live<T>, AsyncDisposable {}

/**
 * Where the nodes of the cluster come from. One implementation per folder or file beside this one. Every call has a
 * deadline of its own, and names the registry in its errors.
 */
export interface NodeRegistry extends AsyncDisposable {
  /** For messages: `the etcd registry at …`. */
  readonly name: string;
  /** URLs of the machines that keep it; absent where it is no machine's. */
  readonly servers?: readonly string[];
  /** What of it does not work now, as those have found who follow it. */
  readonly health: RegistryHealth;
  /**
   * Registers the node, and gives it its subnets if it has none. The same again answers the same; a node that moved
   * (another address or MAC, same uid) is updated.
   * @param claims whether a node that is not there may get new subnets, which one whose pods stand has no use for; absent: yes
   * @param preferred of new subnets these, where they can be had: pods of the node have addresses of them
   * @throws {CniError} 11 where the registry cannot be reached, 7 where the name is taken by another uid, 101 where no subnet is free, or none is to be claimed
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
  /** The same with the registry's own count of its states; absent where it has none. */
  listAt?(): Promise<{ readonly revision: number; readonly nodes: readonly ListedNode[] }>;
  /**
   * All nodes by name, this one too: a whole new map with every change. Where two have the same, who comes first has said so
   * for longer. Reconnects and resumes by itself.
   */
  follow(): Followed<ReadonlyMap<string, ClusterNode>>;
  /** What this client may do there and no node has to, in sentences; absent where there is nothing. Never fails. */
  excessRights?(): Promise<readonly string[]>;
  /** Where projects have their VNIDs; absent where this registry keeps none. */
  readonly tenants?: TenantRegistry;
}

/** VNIDs of projects (Kubernetes namespaces): 0 is privileged; others are from 10 to 2^24-1 (OpenShift SDN). */
export interface TenantRegistry {
  /** The project's VNID, allocated at the first call for it, for good; 0 for project `default`. @throws {CniError} 11, 101 where none is free */
  vnidOf(project: string): Promise<number>;
  /** Gives the project a VNID of another, 0, or a new one of its own, and confirms it: a person's word. */
  assign(project: string, to: { join: string } | "global" | "own"): Promise<number>;
  /** All projects, the oldest number first: a whole new map with every change. */
  follow(): Followed<ReadonlyMap<string, number>>;
  /**
   * Which numbers people have confirmed, kept where no node can write; absent where all that is told is a person's word.
   * As `follow`.
   */
  followConfirmed?(): Followed<ReadonlyMap<string, number>>;
  /** Says that the number of the project is meant, and of all that share it; absent as above. @throws {CniError} 7 where it has another */
  confirm?(project: string, vnid: number): Promise<void>;
}

/** Namespaces of Kubernetes (RFC 1123, a label): they go into keys, files and command lines. */
export const projectNameRule = 'at most 63 lower-case letters, digits and "-", a letter or digit at both ends';

export const isProjectName = (text: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(text);

/** Of this project every other uses something; it is privileged until a person says otherwise. */
export const privilegedProject = "default";
