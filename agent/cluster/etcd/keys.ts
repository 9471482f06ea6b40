import { type Cidr, formatCidr } from "../../../shared/net/ip.ts";
import { type EtcdClient, EtcdError, get, put } from "../../protocols/etcd/mod.ts";

/** The keys in etcd. */
export class Keys {
  readonly #base: string;

  constructor(prefix: string) {
    this.#base = `${prefix}/v1`;
  }

  /** The cluster networks, written by the first node. */
  get config(): string {
    return `${this.#base}/config`;
  }

  /** A record per node, which every other one follows. */
  get nodes(): string {
    return `${this.#base}/nodes/`;
  }

  node(name: string): string {
    return this.nodes + name;
  }

  /** The holder of each subnet: an existing key cannot be claimed again. */
  get subnets(): string {
    return `${this.#base}/subnets/`;
  }

  subnet(subnet: Cidr): string {
    return this.subnets + formatCidr(subnet);
  }

  /** Nodes that are alive, each key with a lease. */
  get alive(): string {
    return `${this.#base}/alive/`;
  }

  aliveNode(name: string): string {
    return this.alive + name;
  }

  /** The VNID of each project. */
  get vnids(): string {
    return `${this.#base}/vnids/`;
  }

  vnid(project: string): string {
    return this.vnids + project;
  }

  /** The VNID that a person has confirmed for a project: only people may write here, where etcd knows users. */
  get confirmedVnids(): string {
    return `${this.#base}/confirmed-vnids/`;
  }

  confirmedVnid(project: string): string {
    return this.confirmedVnids + project;
  }

  /** Which VNIDs are in use. */
  get vnidIds(): string {
    return `${this.#base}/vnid-ids/`;
  }

  vnidId(vnid: number): string {
    return this.vnidIds + vnid.toString(16).padStart(6, "0");
  }

  /** Counted by etcd itself: see `takeTicket`. */
  ticket(of: "subnets" | "vnids"): string {
    return `${this.#base}/tickets/${of}`;
  }
}

/**
 * A unique number, from 0: etcd counts how often the key was put, and one transaction puts and reads it.
 *
 * It is a hint where to begin the search, so that concurrent clients find different subnets. Lost, repeated or
 * restarted numbers cost another attempt; that nothing is given out twice rests on the claims alone.
 * @throws {EtcdError}
 */
export async function takeTicket(client: EtcdClient, key: string): Promise<number> {
  const { found } = await client.txn({ run: [put(key, ""), get(key)] });
  const version = found[1]?.[0]?.version ?? 0;
  if (version < 1) throw new EtcdError("uncertain", `the answer says nothing about "${key}"`);
  return version - 1;
}
