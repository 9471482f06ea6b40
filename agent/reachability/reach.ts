import type { ProbeState } from "../../shared/documents/mod.ts";

/** What is known of the way to another node's pods, for one family. */
export interface Reach {
  readonly state: ProbeState;
  /** Until the answer, smoothed. */
  readonly rttMicros?: number;
  readonly lastRttMicros?: number;
  /** Of the last answer, milliseconds since 1970. */
  readonly seenAtMs?: number;
  /** The first question without an answer since the last one with. */
  readonly lostSinceMs?: number;
  /** Questions in a row without an answer. */
  readonly failures: number;
  readonly reason?: string;
  /** Where packets of pods' MTU do not come through: the largest that do, in bytes, and since when. */
  readonly narrow?: { readonly mtu: number; readonly podMtu: number; readonly sinceMs: number };
}

export const unknownReach: Reach = { state: "unknown", failures: 0 };

/** Questions in a row without an answer that make a way a lost one: one packet may always be lost. */
export const failuresUntilLost = 3;
/** The part of a new round trip time in the smoothed one: RFC 6298's. */
const newPart = 1 / 8;

/** The same after an answer. */
export function answered({ rttMicros, narrow }: Reach, tookMicros: number, nowMs: number): Reach {
  const smoothed = rttMicros === undefined ? tookMicros : rttMicros + (tookMicros - rttMicros) * newPart;
  return {
    ...{ state: "reachable", failures: 0, seenAtMs: nowMs },
    ...{ rttMicros: Math.round(smoothed), lastRttMicros: tookMicros },
    ...(narrow === undefined ? {} : { narrow }),
  };
}

/** The same after a question without an answer. One that never had an answer may be of a node that gives none. */
export function unanswered(reach: Reach, reason: string, nowMs: number): Reach {
  const failures = reach.failures + 1;
  const failed = reach.seenAtMs === undefined ? "silent" : "lost";
  return {
    ...reach,
    ...{ failures, reason, lostSinceMs: reach.lostSinceMs ?? nowMs },
    state: failures >= failuresUntilLost ? failed : reach.state,
  };
}

/** The same after packets of pods' MTU were tried. @param mtu the largest that comes through; absent: all do */
export function measured(reach: Reach, podMtu: number, mtu: number | undefined, nowMs: number): Reach {
  const { narrow, ...rest } = reach;
  return mtu === undefined ? rest : { ...rest, narrow: { mtu, podMtu, sinceMs: narrow?.sinceMs ?? nowMs } };
}

export const isLost = ({ state }: Pick<Reach, "state">): boolean => state === "lost" || state === "silent";
