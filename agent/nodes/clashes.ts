import { type Cidr, contains, formatCidr, formatIp } from "../../shared/ip.ts";
import type { ClusterNode } from "./node-registry.ts";

/** What a node cannot have, because an earlier one of the list has it. */
export interface Clash {
  readonly node: ClusterNode;
  readonly earlier: ClusterNode;
  /** `"10.1.0.0/24", which overlaps with "10.1.0.0/16" of "node-1"` */
  readonly is: string;
}

interface Block {
  readonly cidr: Cidr;
  readonly node: ClusterNode;
  readonly rank: number;
}

/**
 * Addresses that two nodes have, and subnets that overlap: packets for one would go to the other. Of two such nodes the
 * one that comes later in the list is named.
 */
export function clashesAmong(nodes: readonly ClusterNode[]): Clash[] {
  return [...addressClashes(nodes), ...subnetClashes(nodes)];
}

function* addressClashes(nodes: readonly ClusterNode[]): Generator<Clash> {
  const holders = new Map<string, ClusterNode>();
  for (const node of nodes)
    for (const address of node.addresses) {
      const text = formatIp(address);
      const earlier = holders.get(text);
      if (earlier === undefined) holders.set(text, node);
      else yield { node, earlier, is: `"${text}", the address of "${earlier.name}"` };
    }
}

/** Blocks in the order of their first addresses: whatever holds the next one stands open on the stack. */
function* subnetClashes(nodes: readonly ClusterNode[]): Generator<Clash> {
  const blocks = nodes.flatMap((node, rank) => node.subnets.map((cidr): Block => ({ cidr, node, rank })));
  blocks.sort((a, b) => a.cidr.ip.family - b.cidr.ip.family || compare(a, b) || a.cidr.prefix - b.cidr.prefix);
  const open: Block[] = [];
  for (const block of blocks) {
    while (open.length > 0 && !contains(open.at(-1)?.cidr ?? block.cidr, block.cidr.ip)) open.pop();
    for (const around of open) {
      const [first, later] = around.rank < block.rank ? [around, block] : [block, around];
      const is = `"${formatCidr(later.cidr)}", which overlaps with "${formatCidr(first.cidr)}" of "${first.node.name}"`;
      yield { node: later.node, earlier: first.node, is };
    }
    // As deep as prefixes are long, but for blocks that are given out many times.
    if (open.length < 128) open.push(block);
  }
}

function compare(a: Block, b: Block): number {
  const [left, right] = [a.cidr.ip.value, b.cidr.ip.value];
  return left < right ? -1 : left > right ? 1 : 0;
}
