import { type Cidr, formatCidr, formatIp, hostBlock, type Ip, overlap } from "../../shared/ip.ts";
import type { ClusterNode } from "./node-registry.ts";

/** A node that cannot have what it has, because an earlier one has it. */
export interface Clash {
  readonly node: ClusterNode;
  /** `"10.1.0.0/24", which overlaps with "10.1.0.0/16" of "node-1"` */
  readonly is: string;
}

/**
 * Addresses that two nodes have, subnets that overlap, and addresses in somebody's subnet: packets for one would go to the
 * other. The nodes are taken in their order, each that does not fit to those before it is named, and stands in nobody's way.
 */
export function clashesAmong(nodes: Iterable<ClusterNode>): Clash[] {
  const blocks = { 4: new DisjointBlocks(), 6: new DisjointBlocks() };
  const clashes: Clash[] = [];
  for (const node of nodes) {
    const own = [
      ...node.addresses.map((ip) => ({ cidr: hostBlock(ip), node, address: ip })),
      ...node.subnets.map((cidr) => ({ cidr, node })),
    ];
    const is = takenOf(own, blocks) ?? withinItself(node);
    if (is === undefined) for (const block of own) blocks[block.cidr.ip.family].add(block);
    else clashes.push({ node, is });
  }
  return clashes;
}

const takenOf = (own: readonly Block[], blocks: Readonly<Record<4 | 6, DisjointBlocks>>): string | undefined =>
  own.map((block) => sentenceOf(block, blocks[block.cidr.ip.family].taken(block.cidr))).find((is) => is !== undefined);

function withinItself({ name, addresses, subnets }: ClusterNode): string | undefined {
  const address = addresses.find((ip) => subnets.some((cidr) => overlap(cidr, hostBlock(ip))));
  return address === undefined ? undefined : `"${formatIp(address)}" of "${name}" itself in its own subnet`;
}

/** What a node has: a subnet, or an address of its own. */
interface Block {
  readonly cidr: Cidr;
  readonly node: ClusterNode;
  readonly address?: Ip;
}

function sentenceOf(block: Block, other: Block | undefined): string | undefined {
  if (other === undefined) return undefined;
  const [its, others] = [block, other].map(({ cidr, address }) =>
    address === undefined ? `"${formatCidr(cidr)}"` : `"${formatIp(address)}"`,
  );
  const holder = `"${other.node.name}"`;
  if (block.address !== undefined && other.address !== undefined) return `${its}, the address of ${holder}`;
  if (other.address !== undefined) return `${its}, in which ${others}, the address of ${holder}, is`;
  if (block.address !== undefined) return `${its} in ${others} of ${holder}`;
  return `${its}, which overlaps with ${others} of ${holder}`;
}

/** Blocks of one family that do not overlap, in the order of their addresses. */
class DisjointBlocks {
  readonly #blocks: Block[] = [];

  /** What stands in the block's way. */
  taken(cidr: Cidr): Block | undefined {
    const next = this.#after(cidr);
    // Whatever overlaps begins last before the block's end: blocks hold each other, or have nothing in common.
    return [this.#blocks[next - 1], this.#blocks[next]].find(
      (block) => block !== undefined && overlap(block.cidr, cidr),
    );
  }

  add(block: Block): void {
    this.#blocks.splice(this.#after(block.cidr), 0, block);
  }

  /** How many begin before the block does, or with it. */
  #after({ ip }: Cidr): number {
    let [low, high] = [0, this.#blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle]?.cidr.ip.value ?? 0n) <= ip.value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
