import { type Cidr, formatCidr } from "../../../shared/net/ip.ts";
import { type EtcdClient, EtcdError, get, put } from "../../protocols/etcd/mod.ts";

/** What lies where in etcd. */
export class Keys {
  readonly #base: string;

  constructor(prefix: string) {
    this.#base = `${prefix}/v1`;
  }

  /** The cluster networks, as the first node has said them. */
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

  /** Who has which subnet: a key that is there cannot be claimed again. */
  get subnets(): string {
    return `${this.#base}/subnets/`;
  }

  subnet(subnet: Cidr): string {
    return this.subnets + formatCidr(subnet);
  }

  /** Who was heard of lately, each with a lease. */
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
 * A number that nobody else gets, from 0: etcd counts how often the key was put, and one transaction puts and reads it.
 *
 * It is a hint where to begin to look, so that those who look at once find different things. Numbers that are lost,
 * doubled or begin again cost a try more; that nothing is given away twice rests on the claims alone.
 * @throws {EtcdError}
 */
export async function takeTicket(client: EtcdClient, key: string): Promise<number> {
  const { found } = await client.txn({ run: [put(key, ""), get(key)] });
  const version = found[1]?.[0]?.version ?? 0;
  if (version < 1) throw new EtcdError("uncertain", `the answer says nothing about "${key}"`);
  return version - 1;
}
