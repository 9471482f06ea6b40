import type { Shot } from "./grammar/frames.ts";
import type { Rule } from "./rules.ts";

/** What got through against one rule at one place. */
export interface Finding {
  readonly rule: Rule;
  /** "n2/far", "n1 wire"; of what somebody believes, who. */
  readonly place: string;
  count: number;
  /** The smallest frame that shows it; absent where it could not be told. */
  smallest: Shot | undefined;
  /** What changed, where it is not the frame itself that arrived. */
  readonly change?: string;
}

/** What came of an attack. */
export class Outcome {
  frames = 0;
  /** The attacker's own kernel did not take them. */
  refused = 0;
  controls = 0;
  controlsLost = 0;
  /** Arrivals where they may be. */
  allowed = 0;
  readonly #findings = new Map<string, Finding>();

  /** In the order of places and rules. */
  get findings(): readonly Finding[] {
    return [...this.#findings.values()].sort((a, b) => a.place.localeCompare(b.place) || a.rule.localeCompare(b.rule));
  }

  /** @returns whether it is the first of its kind */
  note(rule: Rule, place: string, smallest: Shot | undefined, change?: string): boolean {
    const key = `${rule} at ${place}`;
    const found = this.#findings.get(key);
    if (found === undefined) {
      this.#findings.set(key, { rule, place, count: 1, smallest, ...(change === undefined ? {} : { change }) });
      return true;
    }
    found.count++;
    if (change === undefined && smallest !== undefined && smallest.bytes.length < (found.smallest?.bytes.length ?? 0))
      found.smallest = smallest;
    return false;
  }

  /** Which frame it was that showed it first, once that is known. */
  blame(rule: Rule, place: string, shot: Shot | undefined): void {
    const found = this.#findings.get(`${rule} at ${place}`);
    if (found !== undefined) found.smallest = shot;
  }
}
