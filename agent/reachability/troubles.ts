import { formatIp, type Ip } from "../../shared/net/ip.ts";
import type { Reach } from "./reach.ts";

/** A way to another node's pods that does not work. */
export interface PeerTrouble {
  readonly node: string;
  readonly state: "lost" | "silent" | "mtu";
  readonly message: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

/** As many as people read; the numbers have them all. */
const maxTroubles = 20;

interface ExaminedWay {
  readonly node: string;
  readonly to: Ip;
  readonly reach: Reach;
}

/** In sentences, the oldest first. */
export function troublesOf(ways: readonly ExaminedWay[]): readonly PeerTrouble[] {
  return ways
    .flatMap(troubleOf)
    .sort((a, b) => a.sinceMs - b.sinceMs || (a.message < b.message ? -1 : 1))
    .slice(0, maxTroubles);
}

function troubleOf({ node, to, reach }: ExaminedWay): readonly PeerTrouble[] {
  const { state, lostSinceMs = 0, narrow, reason = "" } = reach;
  const whom = `the pods of node "${node}" (gateway ${formatIp(to)})`;
  if (state === "lost")
    return [{ node, state, sinceMs: lostSinceMs, message: `this node no longer reaches ${whom}: ${reason}` }];
  if (state === "silent")
    return [
      { node, state, sinceMs: lostSinceMs, message: `this node has never reached ${whom} since its start: ${reason}` },
    ];
  if (narrow === undefined) return [];
  const { mtu, podMtu, sinceMs } = narrow;
  const is = `packets of pods' MTU, ${podMtu} bytes, do not reach ${whom}, and those of ${mtu} bytes do`;
  return [{ node, state: "mtu", sinceMs, message: `${is}, wanted "mtu: ${mtu}" of the network` }];
}
