import { byteMutators, dictionaryMutator } from "../mutate/bytes.ts";
import { clearHits, featuresHit } from "./hits.ts";
import { Judge } from "./judge.ts";
import type { Chance, Mutator, Opened, Target } from "./target.ts";

export interface Defect {
  readonly bytes: Uint8Array;
  /** What was wrong, in one line: two inputs with the same one show the same defect. */
  readonly kind: string;
  readonly why: string;
}

interface Entry {
  readonly bytes: Uint8Array;
  /** All that it reaches; empty where nothing counts. */
  readonly features: readonly number[];
}

export interface FuzzerOptions {
  readonly target: Target;
  readonly opened: Opened;
  readonly chance: Chance;
  /** Told of each input before it is given in: so that one that never ends is known. */
  before(bytes: Uint8Array): void;
  onDefect(defect: Defect): void;
}

/** Kinds of defects that are reported of one target; beyond, each input would tell another tale. */
const maxKinds = 50;

/**
 * Gives inputs to a target, each made from an earlier one, and keeps those that reach what none reached before: a
 * branch, or a loop another number of times. Where nothing counts (no instrumented code) it goes on from the corpus alone.
 */
export class Fuzzer {
  inputs = 0;
  readonly #entries: Entry[] = [];
  readonly #seen = new Set<number>();
  readonly #kinds = new Set<string>();
  readonly #mutators: readonly Mutator[];
  readonly #options: FuzzerOptions;
  readonly #judge: Judge;

  constructor(options: FuzzerOptions) {
    const { target, opened } = options;
    this.#options = options;
    this.#judge = new Judge((bytes) => opened.run(bytes));
    const words = target.dictionary.length === 0 ? [] : [dictionaryMutator(target.dictionary)];
    // Those that know the structure as often as all those that do not.
    const structured = target.mutators.flatMap((mutator) => Array<Mutator>(6).fill(mutator));
    this.#mutators = [...byteMutators, ...words, ...words, ...structured];
  }

  get kept(): number {
    return this.#entries.length;
  }

  get defects(): number {
    return this.#kinds.size;
  }

  /** Counters reached, whatever their degree. */
  get reached(): number {
    return new Set([...this.#seen].map((feature) => feature >> 4)).size;
  }

  /** An input of the corpus: kept, whatever it reaches. */
  async seed(bytes: Uint8Array): Promise<void> {
    const features = await this.#try(bytes);
    for (const feature of features) this.#seen.add(feature);
    this.#entries.push({ bytes, features });
  }

  /** One new input. */
  async step(): Promise<void> {
    const { chance } = this.#options;
    const { maxBytes } = this.#options.target;
    let bytes = this.#pick().bytes;
    for (let times = 1 + chance(chance(4) === 0 ? 8 : 3); times > 0; times--) {
      const mutate = this.#mutators[chance(this.#mutators.length)] as Mutator;
      bytes = mutate(bytes, this.#pick().bytes, chance);
    }
    bytes = bytes.subarray(0, maxBytes);
    const features = await this.#try(bytes);
    const fresh = features.filter((feature) => !this.#seen.has(feature));
    if (fresh.length === 0) return;
    for (const feature of features) this.#seen.add(feature);
    const shorter = await this.#shortened(bytes, fresh);
    this.#entries.push({ bytes: shorter.slice(), features: await this.#try(shorter) });
  }

  /** The inputs that together reach most: each time the one that adds most counters, the shorter of two. */
  smallestSet(maxInputs: number, maxBytes: number): Uint8Array[] {
    const reached = new Set<number>();
    const chosen: Uint8Array[] = [];
    const gain = ({ features }: Entry): number => features.filter((feature) => !reached.has(feature >> 4)).length;
    for (let left = maxBytes; chosen.length < maxInputs; ) {
      const fits = this.#entries.filter(({ bytes }) => bytes.length <= left);
      const [best] = fits.toSorted((a, b) => gain(b) - gain(a) || a.bytes.length - b.bytes.length);
      if (best === undefined || gain(best) === 0) break;
      for (const feature of best.features) reached.add(feature >> 4);
      chosen.push(best.bytes);
      left -= best.bytes.length;
    }
    return chosen;
  }

  /** One of all, the later ones more often: they were not tried as much. */
  #pick(): Entry {
    const { chance } = this.#options;
    const { length } = this.#entries;
    const recent = chance(3) === 0 && length > 32 ? length - 32 + chance(32) : chance(length);
    return this.#entries[recent] as Entry;
  }

  /** Leaves parts out as long as it still reaches what made it worth keeping. */
  async #shortened(bytes: Uint8Array, fresh: readonly number[]): Promise<Uint8Array> {
    let best = bytes;
    for (let size = best.length >> 1, tries = 0; size >= 1 && tries < 48; size >>= 1) {
      for (let at = 0; at + size <= best.length && tries < 48; tries++) {
        const shorter = new Uint8Array(best.length - size);
        shorter.set(best.subarray(0, at));
        shorter.set(best.subarray(at + size), at);
        const features = new Set(await this.#try(shorter));
        if (fresh.every((feature) => features.has(feature))) best = shorter;
        else at += size;
      }
    }
    return best;
  }

  /** What an input reaches; a defect is reported once for each kind. */
  async #try(bytes: Uint8Array): Promise<number[]> {
    this.inputs++;
    this.#options.before(bytes);
    clearHits();
    const found = this.#judge.judge(bytes);
    const wrong = found instanceof Promise ? await found : found;
    const features = featuresHit();
    if (wrong !== undefined && !this.#kinds.has(wrong.kind) && this.#kinds.size < maxKinds) {
      this.#kinds.add(wrong.kind);
      this.#options.onDefect({ bytes: bytes.slice(), ...wrong });
    }
    return features;
  }
}
