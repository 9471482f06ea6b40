import { type Cidr, formatCidr, formatIp, lastOf } from "../../shared/ip.ts";
import type { ClusterNode } from "./node-registry.ts";

/** A node that cannot have what it has, because an earlier one has it. */
export interface Clash {
  readonly node: ClusterNode;
  /** `"10.1.0.0/24", which overlaps with "10.1.0.0/16" of "node-1"` */
  readonly is: string;
}

/**
 * Addresses that two nodes have, and subnets that overlap: packets for one would go to the other. The nodes are taken
 * in their order, each that does not fit to those before it is named, and stands in nobody's way.
 */
export function clashesAmong(nodes: Iterable<ClusterNode>): Clash[] {
  const addresses = new Map<string, ClusterNode>();
  const blocks = { 4: new DisjointBlocks(), 6: new DisjointBlocks() };
  const clashes: Clash[] = [];
  for (const node of nodes) {
    const texts = node.addresses.map(formatIp);
    const is =
      addressTaken(texts, addresses) ??
      node.subnets.map((cidr) => blocks[cidr.ip.family].taken(cidr)).find((taken) => taken !== undefined);
    if (is !== undefined) {
      clashes.push({ node, is });
      continue;
    }
    for (const text of texts) addresses.set(text, node);
    for (const cidr of node.subnets) blocks[cidr.ip.family].add(cidr, node);
  }
  return clashes;
}

function addressTaken(texts: readonly string[], holders: ReadonlyMap<string, ClusterNode>): string | undefined {
  const text = texts.find((candidate) => holders.has(candidate));
  return text === undefined ? undefined : `"${text}", the address of "${holders.get(text)?.name}"`;
}

interface Block {
  readonly cidr: Cidr;
  readonly node: ClusterNode;
}

/** Blocks of one family that do not overlap, in the order of their addresses. */
class DisjointBlocks {
  readonly #blocks: Block[] = [];

  /** What stands in the block's way. */
  taken(cidr: Cidr): string | undefined {
    const next = this.#after(cidr);
    // Whatever overlaps begins last before the block's end: blocks hold each other, or have nothing in common.
    const other = [this.#blocks[next - 1], this.#blocks[next]].find(
      (block) => block !== undefined && overlaps(block.cidr, cidr),
    );
    if (other === undefined) return undefined;
    return `"${formatCidr(cidr)}", which overlaps with "${formatCidr(other.cidr)}" of "${other.node.name}"`;
  }

  add(cidr: Cidr, node: ClusterNode): void {
    this.#blocks.splice(this.#after(cidr), 0, { cidr, node });
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

const overlaps = (a: Cidr, b: Cidr): boolean => a.ip.value <= lastOf(b).value && b.ip.value <= lastOf(a).value;
