/** Makes something else of an input; `other` is another input of the corpus. */
export type Mutator = (input: Uint8Array, other: Uint8Array, chance: Chance) => Uint8Array;

/** Whole numbers from 0 to below `bound`. */
export type Chance = (bound: number) => number;

/** One boundary of the product, made ready in this process. */
export interface Opened {
  /**
   * Gives one input to the product. Returns where the product took it or refused it in the words that this boundary
   * promises; throws, and so reports a defect, where it did anything else.
   */
  run(input: Uint8Array): void | Promise<void>;
  /** Ends what was opened. */
  close?(): void | Promise<void>;
}

export interface Target {
  readonly name: string;
  /** What it hands inputs to, for the report. */
  readonly what: string;
  readonly mutators: readonly Mutator[];
  /** Words that mean something here. */
  readonly dictionary: readonly string[];
  /** Longer inputs are cut: they find nothing that shorter ones do not, and take longer. */
  readonly maxBytes: number;
  open(): Promise<Opened> | Opened;
}
