import type { DocumentPeer, PeersDocument } from "../../shared/documents/mod.ts";
import type { Health } from "../parts/mark.tsx";
import { byName, type OfNode } from "../stream/store.ts";

/** What one node says of another. */
export interface Pair {
  readonly from: string;
  readonly to: string;
  readonly health: Health;
  readonly word: string;
  /** Nobody has been asked, or not yet. */
  readonly isPending?: true;
  readonly peer?: DocumentPeer;
}

/** Nodes that are compared with each other: 40,000 pairs, and more than a page shows in any case. */
export const mostCompared = 200;

/** Those that can be asked, and those that they tell of: by name, and no more than are compared. */
export function namesOf(asked: readonly string[], all: readonly OfNode<PeersDocument>[]): readonly string[] {
  const told = all.flatMap(({ document }) => (document?.peers ?? []).map(({ name }) => name));
  return [...new Set([...asked, ...told])].slice(0, mostCompared).sort(byName);
}

/** All pairs of nodes, by the first and then the second; those of whom nobody says anything are unknown. */
export function pairsOf(all: readonly OfNode<PeersDocument>[], names: readonly string[]): readonly Pair[] {
  const byNode = new Map(all.map((entry) => [entry.node, entry]));
  return names.flatMap((from) => {
    const entry = byNode.get(from);
    const known = new Map((entry?.document?.peers ?? []).map((peer) => [peer.name, peer]));
    return names.filter((to) => to !== from).map((to) => pairOf(from, to, entry, known.get(to)));
  });
}

function pairOf(
  from: string,
  to: string,
  entry: OfNode<PeersDocument> | undefined,
  peer: DocumentPeer | undefined,
): Pair {
  if (entry?.fault !== undefined) return { from, to, health: "unknown", word: `${from} does not tell` };
  if (entry?.document === undefined)
    return { from, to, health: "unknown", word: `${from} has not been asked`, isPending: true };
  if (peer === undefined) return { from, to, health: "warn", word: `${from} does not know ${to}` };
  if (peer.problem !== undefined) return { from, to, health: "bad", word: peer.problem, peer };
  if (peer.state !== "ready") return { from, to, health: "warn", word: peer.state, peer };
  return { from, to, health: "good", word: peer.tunnelPort === undefined ? "ready" : "ready, by tunnel", peer };
}
