import type { Logger } from "../../../shared/log.ts";
import type { ClusterNetwork } from "../../config/nodes-config.ts";
import type { NodeRegistry, TenantRegistry } from "../node-registry.ts";

export interface EtcdRegistryOptions {
  /** `http://HOST:PORT` or `https://HOST:PORT` of each member. */
  readonly endpoints: readonly string[];
  /** What every key begins with, so that several clusters can share an etcd. Default `/pipette`. */
  readonly prefix?: string;
  /** Paths of PEM files: who signs the members' certificates, and this node's own certificate with its key. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /**
   * Those of one family are filled in this order, and a node gets one subnet of each family. All nodes say the same.
   * Default 10.128.0.0/14 with 9 host bits.
   */
  readonly networks?: readonly ClusterNetwork[];
  /** Bound of a call with all its tries. Default 10 s: longer than a cluster takes to choose a leader. */
  readonly callMs?: number;
  readonly logger?: Logger;
}

/** What did not fit together in the registry, and what became of it. */
export interface Repair {
  readonly problem: string;
  /** `found` where nothing was to be changed; `left alone` where only a person can tell who is right. */
  readonly outcome: "found" | "repaired" | "changed meanwhile" | "left alone";
}

export interface EtcdNodeRegistry extends NodeRegistry {
  readonly tenants: TenantRegistry;
  /**
   * Looks for what does not fit together, such as subnets without a node, and puts it right, each by a
   * compare-and-swap of its own: what changes meanwhile stays as it is.
   * @param dryRun looks only
   * @throws {CniError} 11
   */
  repair(options?: { readonly dryRun?: boolean }): Promise<readonly Repair[]>;
}
