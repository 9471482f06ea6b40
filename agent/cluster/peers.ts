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

/** Refused records that are logged; the first ones say enough. */
const maxInLog = 10;

export interface Peers {
  readonly peers: Nodes;
  /** Why a record is left out, a sentence for each. */
  readonly refused: readonly string[];
}

/**
 * The other nodes, without records that the policy refuses and without those that conflict with this node or another
 * one: flows for both would contradict each other, and a subnet around ours would divert our pods' packets. A peer
 * keeps what it had before; new claims are decided by the registry's order. So no node loses its place to a later
 * record, whatever it claims. A node without address or subnet does not count yet.
 * @param before the present peers
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

/** Logs only changes, and a bounded number. */
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

/** A node whose address, subnet or public key conflicts with another's. */
export interface Conflict {
  readonly node: ClusterNode;
  /** `"10.1.0.0/24", which overlaps with "10.1.0.0/16" of "node-1"`, or `the public key of "node-1"` */
  readonly is: string;
}

/**
 * Finds addresses of two nodes, overlapping subnets, and node addresses within a subnet, because packets for one would
 * go to the other; and one public key of two nodes, because a device keeps a single peer for a key. Each address, subnet
 * and key belongs to the node that had it before; new ones go by the nodes' order. A conflicting node is reported, and
 * its new claims do not count against others.
 * @param before nodes that do not contradict each other
 */
export function conflictsAmong(nodes: Iterable<ClusterNode>, before: Nodes = new Map()): Conflict[] {
  const blocks = { 4: new DisjointBlocks(), 6: new DisjointBlocks() };
  const holders = new Map<string, ClusterNode>();
  const all = [...nodes].map((node) => ({ node, own: blocksOf(node), key: publicKeyOf(node) }));
  for (const { node, own, key } of all) {
    const known = before.get(node.name);
    if (known === undefined) continue;
    if (key !== undefined && key === publicKeyOf(known) && !holders.has(key)) holders.set(key, node);
    for (const block of own.filter((each) => has(known, each))) {
      const family = blocks[block.cidr.ip.family];
      if (family.taken(block) === undefined) family.add(block);
    }
  }
  return all.flatMap(({ node, own, key }) => {
    const holder = key === undefined ? undefined : holders.get(key);
    const is =
      own.map((block) => takenIn(blocks, block)).find((taken) => taken !== undefined) ??
      withinItself(node) ??
      (holder === undefined || holder === node ? undefined : `the public key of "${holder.name}"`);
    if (is !== undefined) return [{ node, is }];
    if (key !== undefined) holders.set(key, node);
    for (const block of own) blocks[block.cidr.ip.family].add(block);
    return [];
  });
}

/** By which others send to it alone; absent where it has none of its own. */
const publicKeyOf = ({ encryption }: ClusterNode): string | undefined =>
  encryption?.type === "wireguard" ? encryption.key : undefined;

/** A subnet or an address of a node. */
interface Block {
  readonly cidr: Cidr;
  /** First and last address as numbers, since thousands of blocks are compared at every change. */
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

  /** The block of another node that overlaps with this one. */
  taken(wanted: Block): Block | undefined {
    const next = this.#after(wanted);
    // CIDR blocks contain each other or are disjoint, so only the two neighbours can overlap.
    return [this.#blocks[next - 1], this.#blocks[next]].find(
      (block) => block !== undefined && block.node !== wanted.node && share(block, wanted),
    );
  }

  /** A block that is there already stays. */
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
