import type { DocumentPeer, PeersDocument } from "../../shared/documents/mod.ts";
import type { Health } from "../parts/mark.tsx";
import { duration } from "../parts/words.ts";
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
  /** Until the other node answers by the way of pods' packets, the slower family's. */
  readonly rttMicros?: number;
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
  const word = peer.tunnelPort === undefined ? "ready" : "ready, by tunnel";
  return { from, to, peer, ...probed(peer, word) };
}

/** What probes tell of a peer that is fine as far as the registry knows. */
function probed({ probes = [] }: DocumentPeer, word: string): Pick<Pair, "health" | "word" | "rttMicros"> {
  const troubled = probes.find(({ state }) => state === "lost" || state === "silent");
  if (troubled !== undefined) {
    const { state, address, reason } = troubled;
    const why = reason === undefined ? "" : `: ${reason}`;
    const is = state === "lost" ? `${address} answers no more` : `${address} has never answered`;
    return { health: "bad", word: `${is}${why}` };
  }
  const times = probes.flatMap(({ rttMicros }) => rttMicros ?? []);
  const rtt = times.length === 0 ? {} : { rttMicros: Math.max(...times) };
  const narrow = probes.find(({ mtu }) => mtu !== undefined);
  if (narrow !== undefined)
    return { health: "warn", word: `packets of more than ${narrow.mtu} bytes are lost on the way`, ...rtt };
  const text = rtt.rttMicros === undefined ? "" : `, ${duration(rtt.rttMicros)}`;
  return { health: "good", word: `${word}${text}`, ...rtt };
}
