import { CniCode, CniError } from "../../../shared/errors.ts";
import { bitsOf, type Cidr, contains, firstOf, formatCidr, ipOf } from "../../../shared/net/ip.ts";
import type { ClusterNetwork } from "../../config/nodes-config.ts";
import { etcdLimits } from "../../protocols/etcd/mod.ts";

/** A cluster network, cut into nodes' subnets in a fixed order. */
export class SubnetPool {
  readonly network: ClusterNetwork;
  /** How many subnets there are. */
  readonly count: number;
  readonly #prefix: number;
  readonly #bits: number;

  /** @throws {CniError} 7 for a network that cannot be divided like this */
  constructor(network: ClusterNetwork) {
    const { cidr, hostBits } = network;
    const all = bitsOf(cidr.ip.family);
    const bits = all - cidr.prefix - hostBits;
    const refuse = (is: string): never => {
      const what = `the cluster network ${formatCidr(cidr)} with ${hostBits} host bits`;
      throw new CniError(CniCode.invalidConfig, `Cannot use ${what}: ${is}`);
    };
    if (firstOf(cidr).value !== cidr.ip.value) refuse("it has host bits, wanted its first address");
    // Room for a gateway, a pod, and IPv4's network and broadcast addresses.
    if (!Number.isInteger(hostBits) || hostBits < 2) refuse("a subnet would have no room, wanted 2 host bits or more");
    if (bits < 0) refuse(`it is smaller than one subnet, wanted ${all - cidr.prefix} host bits at most`);
    this.network = network;
    this.#prefix = all - hostBits;
    // More subnets are never given out, as in OpenShift SDN.
    this.#bits = Math.min(bits, etcdLimits.subnetBits);
    const usable = 2 ** this.#bits;
    this.count = this.#skipsZeros ? usable - usable / 65_536 : usable;
  }

  /**
   * The subnet with this number, in OpenShift SDN's order: if subnets are longer than /24, those that begin at an octet
   * come first: 10.1.0.0/26, 10.1.1.0/26 and so on; 10.1.0.64/26 comes after 10.1.255.0/26. For IPv6, subnets whose
   * group of 16 bits is zero are left out.
   */
  at(order: number): Cidr {
    const { cidr, hostBits } = this.network;
    const index = this.#skipsZeros ? order + Math.floor(order / 65_535) + 1 : this.#rotated(order);
    const value = cidr.ip.value + (BigInt(index) << BigInt(hostBits));
    return { ip: ipOf(cidr.ip.family, value), prefix: this.#prefix };
  }

  has(subnet: Cidr): boolean {
    const aligned = firstOf(subnet).value === subnet.ip.value;
    return aligned && subnet.prefix === this.#prefix && contains(this.network.cidr, subnet.ip);
  }

  get #skipsZeros(): boolean {
    return this.network.cidr.ip.family === 6 && this.#bits >= 16;
  }

  #rotated(order: number): number {
    const { cidr, hostBits } = this.network;
    const octet = (bit: number): number => Math.floor(bit / 8);
    const staysWithin = hostBits % 8 === 0 || octet(hostBits - 1) === octet(hostBits + this.#bits - 1);
    if (cidr.ip.family === 6 || staysWithin) return order;
    const left = 8 - (hostBits % 8);
    const mask = 2 ** this.#bits - 1;
    return ((order << left) & mask) | (order >>> (this.#bits - left));
  }
}

/** The networks of one family, which are filled one after the other. */
export class FamilyNetworks {
  readonly #pools: readonly SubnetPool[];

  constructor(pools: readonly SubnetPool[]) {
    this.#pools = pools;
  }

  /** For messages. */
  get name(): string {
    return this.#pools.map(({ network }) => formatCidr(network.cidr)).join(", ");
  }

  has(subnet: Cidr): boolean {
    return this.#pools.some((pool) => pool.has(subnet));
  }

  /** The subnet of a ticket, as long as tickets have not wrapped around. */
  first(ticket: number): Cidr | undefined {
    const pool = this.#pools[0];
    return pool !== undefined && ticket < pool.count ? pool.at(ticket) : undefined;
  }

  /**
   * A free subnet: that of the ticket, else a random one, so that nodes that join at the same time find different ones.
   * `undefined` where all are taken.
   * @param taken the subnets that are not free, as texts
   */
  free(taken: ReadonlySet<string>, ticket?: number): Cidr | undefined {
    for (const pool of this.#pools) {
      const isFree = (order: number): boolean => !taken.has(formatCidr(pool.at(order % pool.count)));
      if (ticket !== undefined && isFree(ticket)) return pool.at(ticket % pool.count);
      const order = freeNumber(pool.count, isFree);
      if (order !== undefined) return pool.at(order);
    }
    return undefined;
  }
}

/** A random free number below `count`. Costs about as many tests as numbers are taken. */
export function freeNumber(count: number, isFree: (number: number) => boolean): number | undefined {
  let at = 0;
  for (let i = 0; i < Math.min(etcdLimits.guesses, count); i++) {
    at = Math.floor(Math.random() * count);
    if (isFree(at)) return at;
  }
  for (let i = 0; i < count; i++) {
    if (isFree((at + i) % count)) return (at + i) % count;
  }
  return undefined;
}

/** The networks by family. @throws {CniError} 7 where there is none, or two overlap */
export function familiesOf(networks: readonly ClusterNetwork[]): readonly FamilyNetworks[] {
  for (const [i, a] of networks.entries()) {
    for (const b of networks.slice(i + 1)) {
      if (!contains(a.cidr, b.cidr.ip) && !contains(b.cidr, a.cidr.ip)) continue;
      const both = `${formatCidr(a.cidr)} and ${formatCidr(b.cidr)}`;
      throw new CniError(CniCode.invalidConfig, `Cannot use the cluster networks: ${both} overlap`);
    }
  }
  if (networks.length === 0)
    throw new CniError(CniCode.invalidConfig, "Cannot use the cluster networks: there is none");
  const pools = networks.map((network) => new SubnetPool(network));
  const ofFamily = (family: 4 | 6): readonly SubnetPool[] =>
    pools.filter((pool) => pool.network.cidr.ip.family === family);
  return [ofFamily(4), ofFamily(6)].filter((each) => each.length > 0).map((each) => new FamilyNetworks(each));
}
