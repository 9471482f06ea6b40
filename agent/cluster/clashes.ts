import {
  type Cidr,
  firstOf,
  formatCidr,
  formatIp,
  hostBlock,
  type Ip,
  lastOf,
  overlap,
  sameIp,
} from "../../shared/net/ip.ts";
import type { ClusterNode } from "./node-registry.ts";

type Nodes = ReadonlyMap<string, ClusterNode>;

/** A node that cannot have what it has, because another has it. */
export interface Conflict {
  readonly node: ClusterNode;
  /** `"10.1.0.0/24", which overlaps with "10.1.0.0/16" of "node-1"` */
  readonly is: string;
}

/**
 * Addresses that two nodes have, subnets that overlap, and addresses in somebody's subnet: packets for one would go to the
 * other. Each address and each subnet is its own who had it before; what is new goes by the nodes' order. A node that
 * does not fit is named, and what is new of it stands in nobody's way.
 * @param before nodes that do not clash
 */
export function conflictsAmong(nodes: Iterable<ClusterNode>, before: Nodes = new Map()): Conflict[] {
  const blocks = { 4: new DisjointBlocks(), 6: new DisjointBlocks() };
  const all = [...nodes].map((node) => ({ node, own: blocksOf(node) }));
  for (const { node, own } of all) {
    const known = before.get(node.name);
    if (known === undefined) continue;
    for (const block of own.filter((each) => has(known, each))) {
      const family = blocks[block.cidr.ip.family];
      if (family.taken(block) === undefined) family.add(block);
    }
  }
  return all.flatMap(({ node, own }) => {
    const is = own.map((block) => takenIn(blocks, block)).find((taken) => taken !== undefined) ?? withinItself(node);
    if (is !== undefined) return [{ node, is }];
    for (const block of own) blocks[block.cidr.ip.family].add(block);
    return [];
  });
}

/** What a node has: a subnet, or an address of its own. */
interface Block {
  readonly cidr: Cidr;
  /** Its first and last address as numbers: there are thousands, held against each other at every change. */
  readonly first: bigint;
  readonly last: bigint;
  readonly node: ClusterNode;
  readonly address?: Ip;
}

const blocksOf = (node: ClusterNode): readonly Block[] => [
  ...node.addresses.map((ip) => ({ cidr: hostBlock(ip), first: ip.value, last: ip.value, node, address: ip })),
  ...node.subnets.map((cidr) => ({ cidr, first: firstOf(cidr).value, last: lastOf(cidr).value, node })),
];

const share = (a: Block, b: Block): boolean => a.first <= b.last && b.first <= a.last;

const has = ({ addresses, subnets }: ClusterNode, { cidr, address }: Block): boolean =>
  address === undefined
    ? subnets.some((each) => each.prefix === cidr.prefix && sameIp(each.ip, cidr.ip))
    : addresses.some((each) => sameIp(each, address));

function withinItself({ name, addresses, subnets }: ClusterNode): string | undefined {
  const address = addresses.find((ip) => subnets.some((cidr) => overlap(cidr, hostBlock(ip))));
  return address === undefined ? undefined : `"${formatIp(address)}" of "${name}" itself in its own subnet`;
}

function takenIn(blocks: Readonly<Record<4 | 6, DisjointBlocks>>, block: Block): string | undefined {
  const other = blocks[block.cidr.ip.family].taken(block);
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

  /** What of another node stands in the block's way. */
  taken(wanted: Block): Block | undefined {
    const next = this.#after(wanted);
    // Whatever overlaps begins last before the block's end: blocks hold each other, or have nothing in common.
    return [this.#blocks[next - 1], this.#blocks[next]].find(
      (block) => block !== undefined && block.node !== wanted.node && share(block, wanted),
    );
  }

  /** One that is there already stays. */
  add(block: Block): void {
    const next = this.#after(block);
    const last = this.#blocks[next - 1];
    if (last === undefined || last.node !== block.node || !share(last, block)) this.#blocks.splice(next, 0, block);
  }

  /** How many begin before the block does, or with it. */
  #after({ first }: Block): number {
    let [low, high] = [0, this.#blocks.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#blocks[middle]?.first ?? 0n) <= first) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
