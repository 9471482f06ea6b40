import type { Action, Flow } from "../../../protocols/openflow/mod.ts";
import { Category } from "../pipeline/cookie.ts";
import { type FlowSet, placeOf } from "../program/flow-set.ts";

/** What one clause names once: a pod, a set of addresses, a block, a range of ports. Rules that name it share it. */
interface Part {
  readonly places: Map<string, Place>;
  /** By the numbers of the rules. */
  readonly users: Map<number, Action>;
  /** Of all users, shared by all places that are in no other part. */
  actions: readonly Action[];
}

/** One match, of every part that has it. */
interface Place {
  readonly flow: Flow;
  readonly parts: Set<Part>;
}

/** Flow sets that the matches are spread over, so that a change of one passes few others to the program. */
const buckets = 1024;

/**
 * The matches of all rules' clauses. One that several clauses have is one flow with the conjunctions of all of them,
 * since the switch has one flow of a match.
 */
export class SharedMatches {
  readonly #parts = new Map<string, Part>();
  readonly #places = new Map<string, Place>();
  readonly #buckets = new Map<string, Map<string, Flow>>();
  readonly #changedPlaces = new Set<string>();
  /** Those with other users. */
  readonly #changedParts = new Set<Part>();
  readonly #narrowed = new Set<number>();

  /** Matches. */
  get size(): number {
    return this.#places.size;
  }

  has(part: string): boolean {
    return this.#parts.has(part);
  }

  /** The rule's clause names the part. @param flows what the part matches, where no rule has named it yet */
  use(name: string, rule: number, conjunction: Action, flows: () => readonly Flow[]): void {
    const part = this.#parts.get(name) ?? { places: new Map(), users: new Map(), actions: [] };
    if (!this.#parts.has(name)) {
      this.#parts.set(name, part);
      this.#define(part, flows());
    }
    part.users.set(rule, conjunction);
    this.#changedParts.add(part);
  }

  release(name: string, rule: number): void {
    const part = this.#parts.get(name);
    if (part === undefined || !part.users.delete(rule)) return;
    this.#narrowed.add(rule);
    this.#changedParts.add(part);
    if (part.users.size > 0) return;
    this.#define(part, []);
    this.#parts.delete(name);
  }

  /** The part matches this from now on. */
  define(name: string, flows: readonly Flow[]): void {
    const part = this.#parts.get(name);
    if (part !== undefined) this.#define(part, flows);
  }

  /** The rules whose clauses have lost something since the last call. */
  takeNarrowed(): readonly number[] {
    const narrowed = [...this.#narrowed];
    this.#narrowed.clear();
    return narrowed;
  }

  /** The flow sets that have changed since the last call. */
  takeChanges(): ReadonlyMap<string, FlowSet | undefined> {
    for (const part of this.#changedParts) {
      part.actions = [...part.users.values()];
      for (const key of part.places.keys()) this.#changedPlaces.add(key);
    }
    this.#changedParts.clear();
    const changed = new Set<string>();
    for (const key of this.#changedPlaces) {
      const name = `policy/matches/${Bun.hash.crc32(key) % buckets}`;
      const bucket = this.#buckets.get(name) ?? new Map<string, Flow>();
      this.#buckets.set(name, bucket);
      changed.add(name);
      const place = this.#places.get(key);
      if (place === undefined) bucket.delete(key);
      else bucket.set(key, { ...place.flow, actions: actionsOf(place) });
      if (bucket.size === 0) this.#buckets.delete(name);
    }
    this.#changedPlaces.clear();
    const flowSetOf = (name: string): FlowSet | undefined => {
      const bucket = this.#buckets.get(name);
      return bucket === undefined ? undefined : { category: Category.policy, flows: [...bucket.values()] };
    };
    return new Map([...changed].map((name) => [name, flowSetOf(name)]));
  }

  #define(part: Part, flows: readonly Flow[]): void {
    const wanted = new Map(flows.map((flow) => [placeOf(flow), flow]));
    for (const [key, place] of part.places) {
      if (wanted.has(key)) continue;
      part.places.delete(key);
      place.parts.delete(part);
      if (place.parts.size === 0) this.#places.delete(key);
      this.#changedPlaces.add(key);
      for (const rule of part.users.keys()) this.#narrowed.add(rule);
    }
    for (const [key, flow] of wanted) {
      if (part.places.has(key)) continue;
      const place = this.#places.get(key) ?? { flow, parts: new Set() };
      this.#places.set(key, place);
      place.parts.add(part);
      part.places.set(key, place);
      this.#changedPlaces.add(key);
    }
  }
}

function actionsOf({ parts }: Place): readonly Action[] {
  const [only] = parts;
  if (only !== undefined && parts.size === 1) return only.actions;
  return [...new Map([...parts].flatMap(({ users }) => [...users])).values()];
}
