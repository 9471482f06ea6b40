import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { type Cidr, parseCidr } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { ClusterNetwork } from "../../config/nodes-config.ts";
import { EtcdClient, EtcdError, parseEndpoints, put, retried, unchanged } from "../../protocols/etcd/mod.ts";
import type {
  ClusterNode,
  Followed,
  ListedNode,
  NodeRegistry,
  Registration,
  TenantRegistry,
} from "../node-registry.ts";
import { RegistryHealth } from "../registry-health.ts";
import { EtcdTenants } from "./etcd-tenants.ts";
import { findingsOf, listedNodes, takeSnapshot } from "./inspection.ts";
import { Join, leave } from "./join.ts";
import { KeepAlive } from "./keep-alive.ts";
import { Keys } from "./keys.ts";
import { Mirror } from "./mirror.ts";
import { readNode, requireRegistration } from "./records.ts";

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

/** An inconsistency in the registry, and the outcome of its repair. */
export interface Repair {
  readonly problem: string;
  /** `found` in a dry run; `left alone` if only a person can decide. */
  readonly outcome: "found" | "repaired" | "changed meanwhile" | "left alone";
}

export interface EtcdNodeRegistry extends NodeRegistry {
  readonly tenants: TenantRegistry;
  /**
   * Finds inconsistencies, such as subnets without a node, and repairs each by a compare-and-swap of its own; what
   * changes meanwhile stays as it is.
   * @param dryRun changes nothing
   * @throws {CniError} 11
   */
  repair(options?: { readonly dryRun?: boolean }): Promise<readonly Repair[]>;
}

/** OpenShift's default: 512 nodes with 512 addresses each. */
const defaultNetworks: readonly ClusterNetwork[] = [{ cidr: parseCidr("10.128.0.0/14")!, hostBits: 9 }];

/**
 * Nodes and tenants in etcd (v3 API): subnets and VNIDs are claimed by compare-and-swap, nothing is ever locked.
 * @throws {CniError} 7 for options that cannot be used. The first call connects; disposing of the registry ends its
 * watches and keep-alives.
 */
export function createEtcdRegistry(options: EtcdRegistryOptions): EtcdNodeRegistry {
  return new EtcdRegistry(options);
}

class EtcdRegistry implements EtcdNodeRegistry {
  readonly tenants: EtcdTenants;
  readonly health: RegistryHealth;
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #join: Join;
  readonly #options: EtcdRegistryOptions;

  constructor(options: EtcdRegistryOptions) {
    const { endpoints, prefix = "/pipette", networks = defaultNetworks, logger } = options;
    if (!/^\/[\x21-\x7e]{1,200}$/.test(prefix) || prefix.endsWith("/")) {
      const is = `the prefix is ${JSON.stringify(prefix.slice(0, 210))}`;
      throw new CniError(CniCode.invalidConfig, `Cannot use the etcd registry: ${is}, wanted one such as "/pipette"`);
    }
    this.#keys = new Keys(prefix);
    this.#client = new EtcdClient(parseEndpoints(endpoints, options), options.callMs);
    this.#join = new Join(this.#client, this.#keys, networks);
    this.#options = options;
    this.health = new RegistryHealth(this.#client.name, logger);
    this.tenants = new EtcdTenants(this.#client, this.#keys, (prefix, read) => this.#follow(prefix, read));
    logger?.debug("The registry of nodes is in etcd", { registry: this.name, prefix });
  }

  get name(): string {
    return this.#client.name;
  }

  get servers(): readonly string[] {
    return this.#options.endpoints;
  }

  async register(self: Registration, claims = true, preferred: readonly Cidr[] = []): Promise<ClusterNode> {
    requireRegistration(self);
    return await this.#retried(`register node "${self.name}"`, () => this.#join.attempt(self, claims, preferred));
  }

  keepAlive(self: ClusterNode): AsyncDisposable {
    return new KeepAlive(this.#client, this.#keys, self, this.health, this.#options.logger);
  }

  async release(name: string, uid?: string): Promise<boolean> {
    // After a lost answer, a node that is gone counts as released by this call.
    let uncertain = false;
    return await this.#retried(`release node "${name}"`, async () => {
      try {
        return (await leave(this.#client, this.#keys, name, uid)) || uncertain;
      } catch (caught) {
        uncertain ||= caught instanceof EtcdError && caught.trouble === "uncertain";
        throw caught;
      }
    });
  }

  async list(): Promise<readonly ListedNode[]> {
    return (await this.listAt()).nodes;
  }

  async listAt(): Promise<{ revision: number; nodes: readonly ListedNode[] }> {
    const snapshot = await this.#retried("list the nodes", () => takeSnapshot(this.#client, this.#keys));
    return { revision: snapshot.revision, nodes: listedNodes(snapshot, this.#keys) };
  }

  follow(): Followed<ReadonlyMap<string, ClusterNode>> {
    return this.#follow(this.#keys.nodes, (name, value) => {
      try {
        return readNode(name, value);
      } catch (caught) {
        // One unreadable record must not hide the others.
        this.#options.logger?.warn("A record in the registry is left out", { node: name, reason: reasonOf(caught) });
        return undefined;
      }
    });
  }

  excessRights(): Promise<readonly string[]> {
    return excessRights(this.#client, this.#keys);
  }

  async repair({ dryRun = false }: { readonly dryRun?: boolean } = {}): Promise<readonly Repair[]> {
    const snapshot = await this.#retried("look for leftovers", () => takeSnapshot(this.#client, this.#keys));
    const repairs: Repair[] = [];
    for (const { problem, repair } of findingsOf(snapshot, this.#keys)) {
      if (dryRun || repair === undefined) {
        repairs.push({ problem, outcome: dryRun && repair !== undefined ? "found" : "left alone" });
        continue;
      }
      const { succeeded } = await this.#retried(`repair that ${problem}`, () => this.#client.txn(repair));
      repairs.push({ problem, outcome: succeeded ? "repaired" : "changed meanwhile" });
    }
    return repairs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
  }

  #retried<T>(action: string, attempt: () => Promise<T>): Promise<T> {
    return retried(this.#client, action, attempt);
  }

  #follow<T>(prefix: string, read: (name: string, value: string) => T | undefined): Followed<ReadonlyMap<string, T>> {
    return new Mirror({ client: this.#client, prefix, read, health: this.health, logger: this.#options.logger });
  }
}

/**
 * Write permissions of this client that no node needs, in sentences. etcd checks every branch of a transaction against
 * the client's role, also one that is never taken, so nothing is written to find out. What cannot be determined is left
 * out.
 */
export async function excessRights(client: EtcdClient, keys: Keys): Promise<readonly string[]> {
  const rights: readonly (readonly [key: string, what: string])[] = [
    [keys.confirmedVnid(nobody), "VNIDs of projects can be confirmed, which lets one project into another"],
    [keys.node(nobody), "the records of other nodes can be written, which sends their pods' packets elsewhere"],
    [keys.config, "the cluster networks can be written, which keeps every node from joining"],
  ];
  const may = await Promise.all(rights.map(([key]) => mayWrite(client, key)));
  return rights.flatMap(([, what], i) => (may[i] ? [what] : []));
}

/** No node or project can be called so. */
const nobody = "-";
/** No revision of a key gets this high. */
const neverReached = Number.MAX_SAFE_INTEGER;

async function mayWrite(client: EtcdClient, key: string): Promise<boolean> {
  try {
    const { succeeded } = await client.txn({ when: [unchanged(key, neverReached)], run: [put(key, "")] });
    return !succeeded;
  } catch {
    return false;
  }
}
