import { type Cidr, formatCidr } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  absent,
  type EtcdClient,
  getAll,
  type KeyValue,
  keyOf,
  put,
  remove,
  type Transaction,
  textOf,
  unchanged,
} from "../../protocols/etcd/mod.ts";
import type { ClusterNode, ListedNode } from "../node-registry.ts";
import type { Keys } from "./keys.ts";
import { type Owner, readNode, readOwner, subnetOf, writeOwner } from "./records.ts";

/** Everything about nodes, as it was at one revision. */
export interface Snapshot {
  readonly revision: number;
  readonly nodes: ReadonlyMap<
    string,
    { readonly modRevision: number; readonly node: ClusterNode | undefined; readonly unreadable: string }
  >;
  /** Marks by the text of their subnet. */
  readonly marks: ReadonlyMap<string, { readonly modRevision: number; readonly owner: Owner | undefined }>;
  /** Uids of those that were heard of lately, by name. */
  readonly alive: ReadonlyMap<string, string>;
}

/** @throws {EtcdError} */
export async function takeSnapshot(client: EtcdClient, keys: Keys): Promise<Snapshot> {
  const prefixes = [keys.nodes, keys.subnets, keys.alive] as const;
  const { found, revision } = await client.txn({ run: prefixes.map((prefix) => getAll(prefix)) });
  const byName = <T>(i: 0 | 1 | 2, read: (name: string, kv: KeyValue) => T): ReadonlyMap<string, T> =>
    new Map(
      (found[i] ?? []).map((kv) => {
        const name = keyOf(kv).slice(prefixes[i].length);
        return [name, read(name, kv)];
      }),
    );
  return {
    revision,
    nodes: byName(0, (name, kv) => {
      const { modRevision } = kv;
      try {
        return { modRevision, node: readNode(name, textOf(kv)), unreadable: "" };
      } catch (caught) {
        return { modRevision, node: undefined, unreadable: reasonOf(caught) };
      }
    }),
    marks: byName(1, (_, kv) => ({ modRevision: kv.modRevision, owner: readOwner(textOf(kv)) })),
    alive: byName(2, (_, kv) => textOf(kv)),
  };
}

/** An inconsistency. */
export interface Finding {
  /** The node that it is about; absent where there is none. */
  readonly node?: string;
  readonly problem: string;
  /** The transaction that repairs it if nothing has changed; absent if only a person can decide. */
  readonly repair?: Transaction;
}

export function findingsOf(snapshot: Snapshot, keys: Keys): readonly Finding[] {
  return [...aboutNodes(snapshot, keys), ...aboutMarks(snapshot, keys)];
}

function* aboutNodes({ nodes, marks }: Snapshot, keys: Keys): Generator<Finding> {
  for (const [name, { node, modRevision, unreadable }] of nodes) {
    if (node === undefined) yield { node: name, problem: unreadable };
    for (const subnet of node?.subnets ?? []) {
      const mark = marks.get(formatCidr(subnet));
      const about = `subnet ${formatCidr(subnet)} of node "${name}"`;
      if (mark === undefined) {
        const key = keys.subnet(subnet);
        const repair: Transaction = {
          when: [unchanged(keys.node(name), modRevision), absent(key)],
          run: [put(key, writeOwner({ node: name, uid: node?.uid ?? "" }))],
        };
        yield { node: name, problem: `${about} is not marked as taken`, repair };
      } else if (mark.owner?.node !== name || mark.owner.uid !== node?.uid) {
        yield { node: name, problem: `${about} is held by ${holderOf(mark.owner, name)}` };
      }
    }
  }
}

function* aboutMarks({ nodes, marks }: Snapshot, keys: Keys): Generator<Finding> {
  const wanted = new Set([...nodes.values()].flatMap(({ node }) => (node?.subnets ?? []).map(formatCidr)));
  for (const [text, { modRevision, owner }] of marks) {
    const subnet = subnetOf(text);
    const holder = owner === undefined ? undefined : nodes.get(owner.node);
    // An unreadable node may hold the subnet, so the mark stays; a subnet of another node is reported with that node.
    if (wanted.has(text) || (holder !== undefined && holder.node === undefined)) continue;
    const problem = `subnet ${text} is taken by ${holderOf(owner)}, which does not have it`;
    yield owner === undefined || subnet === undefined
      ? { problem: `the mark of subnet "${text}" cannot be read` }
      : { problem, repair: freeing(subnet, modRevision, owner, holder?.modRevision ?? 0, keys) };
  }
}

/** Succeeds only if the mark is unchanged, and its holder is unchanged or still missing. */
const freeing = (subnet: Cidr, seen: number, owner: Owner, holderSeen: number, keys: Keys): Transaction => ({
  when: [unchanged(keys.subnet(subnet), seen), unchanged(keys.node(owner.node), holderSeen)],
  run: [remove(keys.subnet(subnet))],
});

const holderOf = (owner: Owner | undefined, name?: string): string =>
  owner === undefined ? "somebody" : owner.node === name ? "an earlier machine of that name" : `node "${owner.node}"`;

/** The nodes of a snapshot, by name, with what is wrong with each. */
export function listedNodes(snapshot: Snapshot, keys: Keys): readonly ListedNode[] {
  const problems = new Map<string, string[]>();
  for (const { node, problem } of findingsOf(snapshot, keys)) {
    if (node !== undefined) problems.set(node, [...(problems.get(node) ?? []), problem]);
  }
  return [...snapshot.nodes].map(([name, { node }]) => {
    const known = node ?? { name, uid: "", addresses: [], subnets: [] };
    const state = node === undefined ? "unknown" : snapshot.alive.get(name) === node.uid ? "ready" : "lost";
    const problem = problems.get(name)?.join("; ");
    return { ...known, state, ...(problem === undefined ? {} : { problem }) };
  });
}
