import type { Logger } from "../../shared/log.ts";
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
import type { Admission } from "./admission.ts";
import type { ClusterNode } from "./node-registry.ts";

type Nodes = ReadonlyMap<string, ClusterNode>;

/** Of many records that are left out the first say enough. */
const maxInLog = 10;

export interface Peers {
  readonly peers: Nodes;
  /** Why a record is left out, a sentence for each. */
  readonly refused: readonly string[];
}

/**
 * The other nodes, without those whose record no node may have here, and those that have what this one or another one has:
 * flows for both would contradict each other, and a subnet around ours would draw our pods' packets away. What a peer had
 * before stays its own; of what is new the registry's order decides. So nobody loses his place to a record that is made
 * later, whatever it claims. A node without address or subnet is none yet.
 * @param before those that were peers until now
 */
export function peersOf(self: ClusterNode, nodes: Nodes, before: Nodes, wrongOf: Admission): Peers {
  const others = [...nodes.values()].filter(
    ({ name, addresses, subnets }) => name !== self.name && addresses.length > 0 && subnets.length > 0,
  );
  const wrong = new Map(others.map((node) => [node, wrongOf(node)]));
  const sound = others.filter((node) => wrong.get(node) === undefined);
  const conflicts = conflictsAmong([self, ...sound], new Map(before).set(self.name, self));
  const out = new Set(conflicts.map(({ node }) => node));
  return {
    peers: new Map(sound.filter((node) => !out.has(node)).map((node) => [node.name, node])),
    refused: [
      ...[...wrong].flatMap(([node, is]) => (is === undefined ? [] : [leftOut(node, is)])),
      ...conflicts.map(({ node, is }) => leftOut(node, `it has ${is}`)),
    ],
  };
}

const leftOut = ({ name }: ClusterNode, is: string): string => `node "${name}" is left out: ${is}`;

/** Says what has changed, and bounded. */
export class RefusalLog {
  #said = "";
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  readonly tell = (sentences: readonly string[]): void => {
    const text = sentences.join("\n");
    if (text === this.#said) return;
    this.#said = text;
    if (sentences.length === 0) this.#logger.info("no records of the registry are refused any more");
    else
      this.#logger.error("records of the registry are refused", {
        records: sentences.slice(0, maxInLog),
        of: sentences.length,
      });
  };
}

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
 * @param before nodes that do not contradict each other
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
