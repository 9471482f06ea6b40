import { random } from "../../../support/random.ts";

/** A choice and how often it is taken, beside the others. */
export type Weighted<T> = readonly (readonly [weight: number, choice: T])[];

/** Chooses for the grammar: the same for the same seed. */
export class Draw {
  readonly #below: (bound: number) => number;
  /** How many of a hundred fields of the frame at hand are to be wrong: before the first frame none. */
  #malice = 0;

  constructor(seed: number) {
    this.#below = random(seed);
  }

  below(bound: number): number {
    return this.#below(bound);
  }

  chance(percent: number): boolean {
    return this.#below(100) < percent;
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[this.#below(list.length)];
    if (picked === undefined) throw new Error("Cannot choose: there is nothing to choose from");
    return picked;
  }

  weighted<T>(choices: Weighted<T>): T {
    let left = this.#below(choices.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, choice] of choices) {
      left -= weight;
      if (left < 0) return choice;
    }
    throw new Error("Cannot choose: there is nothing to choose from");
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.#below(256));
  }

  /** What gets through is mostly right: of most frames one or two fields are wrong, of some many, of some none. */
  newFrame(): void {
    this.#malice = this.weighted([
      [10, 0],
      [50, 12],
      [30, 30],
      [10, 80],
    ]);
  }

  /** Whether this field of the frame is to be wrong. */
  errs(): boolean {
    return this.chance(this.#malice);
  }
}
