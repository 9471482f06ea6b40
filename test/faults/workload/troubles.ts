import type { StressOutcome, StressPod, StressVerb } from "../node/stress-node.ts";
import type { Fault, Struck } from "./fault.ts";

/** A fault from the moment in which it strikes until its end has settled. */
export interface Trouble {
  readonly fault: Fault;
  readonly from: number;
  /** What it met; as long as that is not known, nobody can be judged. */
  readonly struck: Promise<Struck | undefined>;
  to: number;
}

/** What a node has gone through, and what its calls may therefore say. Times are of performance.now. */
export class Troubles {
  #all: Trouble[] = [];

  begin(fault: Fault, struck: Promise<Struck>): Trouble {
    const known = struck.catch(() => undefined);
    const trouble = { fault, from: performance.now(), struck: known, to: Number.POSITIVE_INFINITY };
    this.#all.push(trouble);
    return trouble;
  }

  end(trouble: Trouble): void {
    trouble.to = performance.now();
  }

  during(from: number, to: number): readonly Trouble[] {
    return this.#all.filter((trouble) => trouble.from <= to && trouble.to >= from);
  }

  /** Whether the pod may have no network: it lost it for good, or packets are lost at the moment. */
  async explains(pod: StressPod, from: number): Promise<boolean> {
    for (const { fault, struck } of this.during(from, performance.now())) {
      const lost = (await struck)?.lost ?? [];
      if (lost === "all" || lost.includes(pod)) return true;
      if (fault.interrupts === true) return true;
    }
    return false;
  }
}

/** Whether a call under these faults may have ended so. */
export function isExcused(verb: StressVerb, outcome: StressOutcome, faults: readonly Fault[]): boolean {
  if (outcome.t === "ok") return true;
  if (outcome.t === "died") return faults.some(({ killsPlugins }) => killsPlugins === true);
  return faults.some(({ refusals }) => refusals[verb]?.includes(outcome.code) === true);
}
