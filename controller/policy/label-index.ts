import { type Labels, type Selector, selects } from "../../shared/policy/mod.ts";

/**
 * Who matches whom, without comparing everything with everything. Nearly every selector asks one label for one value:
 * it is found by that label, and finds by it what has it. The few others are compared with all.
 */

const noLabel = "";
const labelText = (key: string, value = ""): string => `${key}=${value}`;
const textsOf = (labels: Labels): string[] => Object.entries(labels).map(([key, value]) => labelText(key, value));

/** A label that everything has that the selector selects; none where it asks for no single value. */
function neededLabel({ requirements }: Selector): string {
  for (const requirement of requirements)
    if (requirement.t === "in" && requirement.values.length === 1)
      return labelText(requirement.key, requirement.values[0]);
  return noLabel;
}

/** Things with a selector, to be found by labels. */
export class SelectorIndex<T> {
  readonly #byLabel = new Map<string, Map<T, Selector>>();

  add(selector: Selector, item: T): void {
    const label = neededLabel(selector);
    const there = this.#byLabel.get(label);
    if (there === undefined) this.#byLabel.set(label, new Map([[item, selector]]));
    else there.set(item, selector);
  }

  delete(selector: Selector, item: T): void {
    const label = neededLabel(selector);
    const there = this.#byLabel.get(label);
    if (there?.delete(item) && there.size === 0) this.#byLabel.delete(label);
  }

  get isEmpty(): boolean {
    return this.#byLabel.size === 0;
  }

  /** All whose selector matches these labels. */
  *matching(labels: Labels): Generator<T> {
    yield* this.#of(noLabel, labels);
    for (const label of textsOf(labels)) yield* this.#of(label, labels);
  }

  *#of(label: string, labels: Labels): Generator<T> {
    for (const [item, selector] of this.#byLabel.get(label) ?? []) if (selects(selector, labels)) yield item;
  }
}

/** Things with labels, to be found by a selector. */
export class LabelIndex<T> {
  readonly #all = new Map<T, Labels>();
  readonly #byLabel = new Map<string, Set<T>>();

  add(labels: Labels, item: T): void {
    this.#all.set(item, labels);
    for (const label of textsOf(labels)) {
      const there = this.#byLabel.get(label);
      if (there === undefined) this.#byLabel.set(label, new Set([item]));
      else there.add(item);
    }
  }

  delete(item: T): void {
    const labels = this.#all.get(item);
    if (labels === undefined) return;
    this.#all.delete(item);
    for (const label of textsOf(labels)) {
      const there = this.#byLabel.get(label);
      if (there?.delete(item) && there.size === 0) this.#byLabel.delete(label);
    }
  }

  get items(): IterableIterator<T> {
    return this.#all.keys();
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** All whose labels the selector matches. */
  *matching(selector: Selector): Generator<T> {
    const label = neededLabel(selector);
    const candidates = label === noLabel ? this.#all.keys() : (this.#byLabel.get(label) ?? []);
    for (const item of candidates) {
      const labels = this.#all.get(item);
      if (labels !== undefined && selects(selector, labels)) yield item;
    }
  }
}
