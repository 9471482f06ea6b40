import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, parseCidr } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { ClusterNetwork } from "../../config/cluster-network.ts";
import { parseEndpoints } from "../../protocols/etcd/endpoint.ts";
import { EtcdClient, retried } from "../../protocols/etcd/etcd-client.ts";
import { EtcdError } from "../../protocols/etcd/etcd-error.ts";
import type { ClusterNode, Followed, ListedNode, Registration } from "../node-registry.ts";
import { RegistryHealth } from "../registry-health.ts";
import { EtcdTenants } from "./etcd-tenants.ts";
import { excessRights } from "./excess-rights.ts";
import { findingsOf, listedNodes, takeSnapshot } from "./inspection.ts";
import { Join } from "./join.ts";
import { KeepAlive } from "./keep-alive.ts";
import { Keys } from "./keys.ts";
import { leave } from "./leave.ts";
import { Mirror } from "./mirror.ts";
import type { EtcdNodeRegistry, EtcdRegistryOptions, Repair } from "./options.ts";
import { readNode, requireRegistration } from "./records.ts";

/** OpenShift's default: 512 nodes with 512 addresses each. */
const defaultNetworks: readonly ClusterNetwork[] = [{ cidr: parseCidr("10.128.0.0/14")!, hostBits: 9 }];

/** @throws {CniError} 7 for options that cannot be used. The first call connects; what follows and keeps alive ends with it. */
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
    // What is gone after an answer was lost has gone by us, as far as anybody can tell.
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
        // One record that nobody can read must not keep the others away.
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
