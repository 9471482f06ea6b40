import { CniCode, CniError } from "../../../shared/errors.ts";
import { type Cidr, formatCidr, formatIp } from "../../../shared/net/ip.ts";
import type { ClusterNetwork } from "../../config/nodes-config.ts";
import {
  absent,
  type EtcdClient,
  etcdLimits,
  get,
  getAll,
  type KeyValue,
  keyOf,
  put,
  remove,
  textOf,
  unchanged,
} from "../../protocols/etcd/mod.ts";
import type { ClusterNode, Registration } from "../node-registry.ts";
import { type FamilyNetworks, familiesOf } from "./cluster-networks.ts";
import { type Keys, takeTicket } from "./keys.ts";
import { readNode, readOwner, writeConfig, writeNode, writeOwner } from "./records.ts";

/**
 * How a node gets its subnets. Safety rests on one transaction alone, the claim: it writes the node's record and the
 * marks of its subnets if none of these keys exists. A failure before it has changed nothing; after it the next attempt
 * finds the record by the node's uid.
 */
export class Join {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #config: string;
  readonly #families: readonly FamilyNetworks[];

  constructor(client: EtcdClient, keys: Keys, networks: readonly ClusterNetwork[]) {
    this.#client = client;
    this.#keys = keys;
    this.#config = writeConfig(networks);
    this.#families = familiesOf(networks);
  }

  /** One attempt, which begins by reading the present state. @throws {EtcdError} @throws {CniError} 7, 101 */
  async attempt(self: Registration, claims: boolean, preferred: readonly Cidr[]): Promise<ClusterNode> {
    for (let claim = 0; claim < etcdLimits.claims; claim++) {
      const { config, node } = await this.#look(self.name);
      if (node === undefined && !claims) throw this.#gone(self);
      if (config === undefined) await this.#writeConfig();
      else {
        this.#requireSame(self, textOf(config));
        const done = node === undefined ? await this.#claim(self, config, preferred) : await this.#adopt(self, node);
        if (done !== undefined) return done;
      }
    }
    const is = `others have changed the registry ${etcdLimits.claims} times meanwhile`;
    throw new CniError(CniCode.tryAgainLater, `Cannot register node "${self.name}" in ${this.#client.name}: ${is}`);
  }

  async #look(name: string): Promise<{ config: KeyValue | undefined; node: KeyValue | undefined }> {
    const { found } = await this.#client.txn({ run: [get(this.#keys.config), get(this.#keys.node(name))] });
    return { config: found[0]?.[0], node: found[1]?.[0] };
  }

  /** The first node writes the networks. */
  async #writeConfig(): Promise<void> {
    const key = this.#keys.config;
    await this.#client.txn({ when: [absent(key)], run: [put(key, this.#config)] });
  }

  #requireSame({ name }: Registration, config: string): void {
    if (isSameJson(config, this.#config)) return;
    const is = `its cluster networks are ${this.#config}, wanted those of the registry, ${config.slice(0, 1000)}`;
    throw new CniError(CniCode.invalidConfig, `Cannot register node "${name}" in ${this.#client.name}: ${is}`);
  }

  /** `undefined` if the state has changed, and the attempt has to be repeated. */
  async #claim(self: Registration, config: KeyValue, preferred: readonly Cidr[]): Promise<ClusterNode | undefined> {
    const prefix = this.#keys.subnets;
    const nodeKey = this.#keys.node(self.name);
    const ticket = await takeTicket(this.#client, this.#keys.ticket("subnets"));
    let taken: ReadonlySet<string> | undefined;
    for (let i = 0; i < etcdLimits.claims; i++) {
      const subnets = this.#choose(self, taken, { preferred, ticket: i > 1 ? undefined : ticket });
      if (subnets !== undefined) {
        const node: ClusterNode = { ...self, subnets };
        const owner = writeOwner({ node: self.name, uid: self.uid });
        const keys = subnets.map((subnet) => this.#keys.subnet(subnet));
        const { succeeded, found } = await this.#client.txn({
          when: [unchanged(this.#keys.config, config.modRevision), absent(nodeKey), ...keys.map(absent)],
          run: [put(nodeKey, writeNode(node)), ...keys.map((key) => put(key, owner))],
          otherwise: [get(this.#keys.config), get(nodeKey), getAll(prefix, { keysOnly: true })],
        });
        if (succeeded) return node;
        if (found[0]?.[0]?.modRevision !== config.modRevision || found[1]?.[0] !== undefined) return undefined;
        taken = namesOf(found[2], prefix);
      } else {
        const { found } = await this.#client.txn({ run: [getAll(prefix, { keysOnly: true })] });
        taken = namesOf(found[0], prefix);
      }
    }
    return undefined;
  }

  /** One free subnet of each family; `undefined` if the taken subnets have to be read first. */
  #choose(
    self: Registration,
    taken: ReadonlySet<string> | undefined,
    { preferred, ticket }: { readonly preferred: readonly Cidr[]; readonly ticket: number | undefined },
  ): readonly Cidr[] | undefined {
    const subnets: Cidr[] = [];
    for (const family of this.#families) {
      const kept = preferred.find((subnet) => family.has(subnet) && taken?.has(formatCidr(subnet)) !== true);
      if (kept !== undefined) {
        subnets.push(kept);
        continue;
      }
      const subnet = taken === undefined ? family.first(ticket ?? 0) : family.free(taken, ticket);
      if (subnet === undefined && taken === undefined) return undefined;
      if (subnet === undefined) {
        const is = `all subnets of ${family.name} are taken: release nodes that are gone`;
        throw new CniError(CniCode.ipamFailure, `Cannot register node "${self.name}" in ${this.#client.name}: ${is}`);
      }
      subnets.push(subnet);
    }
    return subnets;
  }

  /** The record exists already: it is this node's own if it has its uid. */
  async #adopt(self: Registration, kv: KeyValue): Promise<ClusterNode | undefined> {
    const before = readNode(self.name, textOf(kv));
    if (before.uid !== self.uid) throw this.#taken(self, before);
    const owner = writeOwner({ node: self.name, uid: self.uid });
    const keys = before.subnets.map((subnet) => this.#keys.subnet(subnet));
    const { found } = await this.#client.txn({ run: keys.map(get) });
    const missing: string[] = [];
    for (const [i, key] of keys.entries()) {
      const mark = found[i]?.[0];
      if (mark === undefined) missing.push(key);
      else this.#requireOwn(self, keyOf(mark).slice(this.#keys.subnets.length), textOf(mark));
    }
    const node: ClusterNode = { ...self, subnets: before.subnets };
    if (missing.length === 0 && writeNode(node) === writeNode(before)) return node;
    const { succeeded } = await this.#client.txn({
      when: [unchanged(this.#keys.node(self.name), kv.modRevision), ...missing.map(absent)],
      run: [put(this.#keys.node(self.name), writeNode(node)), ...missing.map((key) => put(key, owner))],
    });
    return succeeded ? node : undefined;
  }

  #requireOwn(self: Registration, subnet: string, mark: string): void {
    const owner = readOwner(mark);
    if (owner?.node === self.name && owner.uid === self.uid) return;
    const holder = owner === undefined ? "somebody" : `node "${owner.node}"`;
    const is = `its subnet ${subnet} is held by ${holder} too: release one of them`;
    throw new CniError(CniCode.ipamFailure, `Cannot register node "${self.name}" in ${this.#client.name}: ${is}`);
  }

  #gone({ name }: Registration): CniError {
    const is = "it has no such node any more, and pods of this one stand, wanted its record back, or its pods gone";
    return new CniError(CniCode.ipamFailure, `Cannot register node "${name}" in ${this.#client.name}: ${is}`);
  }

  #taken(self: Registration, other: ClusterNode): CniError {
    const [here, there] = [self, other].map(({ addresses }) => addresses.map(formatIp).join(", "));
    const subnets = other.subnets.map(formatCidr).join(", ");
    const is = `the name belongs to another machine, at ${there} with ${subnets}, wanted it free for this one, at ${here}: release it there, or give this one another name`;
    return new CniError(CniCode.invalidConfig, `Cannot register node "${self.name}" in ${this.#client.name}: ${is}`);
  }
}

const namesOf = (kvs: readonly KeyValue[] | undefined, prefix: string): ReadonlySet<string> =>
  new Set((kvs ?? []).map((kv) => keyOf(kv).slice(prefix.length)));

/** Compares without spaces, since people may edit the value. */
function isSameJson(a: string, b: string): boolean {
  try {
    return Bun.deepEquals(JSON.parse(a), JSON.parse(b));
  } catch {
    return false;
  }
}

/** A mark of a subnet, and at which revision it was seen. */
interface Mark {
  readonly key: string;
  readonly modRevision: number;
}

/**
 * One attempt to take a node out and to free its subnets, in one transaction of deletions: etcd accepts those also when
 * its database is full. A mark that belongs to another node stays.
 * @param uid only if the node has it
 * @throws {EtcdError}
 */
export async function leave(client: EtcdClient, keys: Keys, name: string, uid: string | undefined): Promise<boolean> {
  const nodeKey = keys.node(name);
  for (let i = 0; i < etcdLimits.claims; i++) {
    const { found } = await client.txn({ run: [get(nodeKey)] });
    const kv = found[0]?.[0];
    if (kv === undefined) return false;
    const node = readable(name, kv);
    if (uid !== undefined && node?.uid !== uid) return false;
    const own = node === undefined ? [] : await marksOf(client, keys, node);
    const { succeeded } = await client.txn({
      when: [unchanged(nodeKey, kv.modRevision), ...own.map(({ key, modRevision }) => unchanged(key, modRevision))],
      run: [remove(nodeKey), ...own.map(({ key }) => remove(key)), remove(keys.aliveNode(name))],
    });
    if (succeeded) return true;
  }
  const is = `others have changed it ${etcdLimits.claims} times meanwhile`;
  throw new CniError(CniCode.tryAgainLater, `Cannot release node "${name}" in ${client.name}: ${is}`);
}

/** The marks of a node's subnets that are its own. */
async function marksOf(client: EtcdClient, keys: Keys, { name, uid, subnets }: ClusterNode): Promise<readonly Mark[]> {
  const marks = subnets.map((subnet) => keys.subnet(subnet));
  const { found } = await client.txn({ run: marks.map(get) });
  return marks.flatMap((key, i) => {
    const kv = found[i]?.[0];
    const owner = kv === undefined ? undefined : readOwner(textOf(kv));
    return kv !== undefined && owner?.node === name && owner.uid === uid ? [{ key, modRevision: kv.modRevision }] : [];
  });
}

/** An unreadable record can be released too; a repair finds its marks. */
function readable(name: string, kv: KeyValue): ClusterNode | undefined {
  try {
    return readNode(name, textOf(kv));
  } catch {
    return undefined;
  }
}
