import type { Fault, Struck } from "./fault.ts";
import type { StressOutcome, StressPod, StressVerb } from "./stress-node.ts";

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

  /** Whether a call that ran so long may have ended so. */
  excuse(verb: StressVerb, outcome: StressOutcome, during: readonly Trouble[]): boolean {
    if (outcome.t === "ok") return true;
    if (outcome.t === "died") return during.some(({ fault }) => fault.killsPlugins === true);
    return during.some(({ fault }) => fault.refusals[verb]?.includes(outcome.code) === true);
  }

  /** Whether the pod may have no network: it lost it for good, or packets are lost at the moment. */
  async explains(pod: StressPod, from: number): Promise<boolean> {
    for (const { fault, struck } of this.during(from, performance.now())) {
      if ((await struck)?.lost.includes(pod) === true) return true;
      if (fault.interrupts === true) return true;
    }
    return false;
  }
}
