import type { AgentMeter } from "./meter.ts";

/**
 * Parts of a call, in the order in which they come first: until its turn, its addresses, its policies before there is an
 * interface and until they are in force, the interface, its port in the bridge or switch, flows that are set after that.
 */
export const callPhases = ["queued", "ipam", "policies", "interface", "port", "flows"] as const;
export type CallPhase = (typeof callPhases)[number];

/** What the numbers call a part: whoever looks at many calls asks less closely than whoever looks at one. */
const measuredAs = {
  queued: "queue",
  ipam: "ipam",
  policies: "policy",
  interface: "datapath",
  port: "datapath",
  flows: "datapath",
} as const satisfies Readonly<Record<CallPhase, string>>;

export interface TimedPhase {
  readonly phase: CallPhase;
  readonly ms: number;
}

/** The times of one call: a part lasts until the next is entered. One that is entered again goes on. */
export class CallPhases {
  readonly #spentMs = new Map<CallPhase, number>();
  #now: CallPhase | undefined;
  #sinceMs = 0;

  enter(phase: CallPhase): void {
    this.#pause(performance.now());
    this.#now = phase;
  }

  /** In which the call is; of one that failed, in which it did. */
  get now(): CallPhase | undefined {
    return this.#now;
  }

  /** In the order in which they were entered first. @param nowMs when the call ended, by `performance.now` */
  end(nowMs = performance.now()): readonly TimedPhase[] {
    this.#pause(nowMs);
    return [...this.#spentMs].map(([phase, ms]) => ({ phase, ms: Math.round(ms * 1000) / 1000 }));
  }

  #pause(nowMs: number): void {
    if (this.#now !== undefined)
      this.#spentMs.set(this.#now, (this.#spentMs.get(this.#now) ?? 0) + nowMs - this.#sinceMs);
    this.#sinceMs = nowMs;
  }
}

/** Adds a call to the numbers. A part that ended in a failure is left out: it says nothing of how long such a part takes. */
export function measurePhases(
  meter: AgentMeter,
  verb: string,
  phases: readonly TimedPhase[],
  failedIn: CallPhase | undefined,
): void {
  const leftOut = failedIn === undefined ? undefined : measuredAs[failedIn];
  const sums = new Map<string, number>();
  for (const { phase, ms } of phases)
    if (measuredAs[phase] !== leftOut) sums.set(measuredAs[phase], (sums.get(measuredAs[phase]) ?? 0) + ms);
  for (const [phase, ms] of sums) meter.observe("pipette_cni_phase_duration_seconds", { verb, phase }, ms / 1000);
}
