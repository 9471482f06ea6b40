import { type Cidr, formatCidr } from "../../../shared/net/ip.ts";

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

  /** Counted by etcd itself: see `ticket.ts`. */
  ticket(of: "subnets" | "vnids"): string {
    return `${this.#base}/tickets/${of}`;
  }
}
