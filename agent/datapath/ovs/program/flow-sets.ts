import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Flow, flowText, type OpenFlowGroup } from "../../../protocols/openflow/mod.ts";
import type { KeyedFlowSet } from "./flow-set.ts";

export type KeyedChanges = ReadonlyMap<string, KeyedFlowSet | undefined>;

/** What takes the switch from one state to another. */
export interface Difference {
  readonly deletedFlows: readonly Flow[];
  /** New ones, and others in the place of earlier ones. */
  readonly addedFlows: readonly Flow[];
  readonly deletedGroups: readonly number[];
  readonly setGroups: readonly OpenFlowGroup[];
  /** Applied in its turn, it takes everything back. */
  readonly back: KeyedChanges;
}

/**
 * What the switch is to have: flow sets by their keys. A flow's place is one flow set's, or several flow sets' that put the same
 * flow there (two nodes that say they have one MAC): it goes with the last of them. A group's number is one flow set's.
 */
export class FlowSets {
  readonly #all = new Map<string, KeyedFlowSet>();
  readonly #places = new Map<string, readonly string[]>();
  readonly #groups = new Map<number, string>();

  get all(): ReadonlyMap<string, KeyedFlowSet> {
    return this.#all;
  }

  hasGroup(id: number): boolean {
    return this.#groups.has(id);
  }

  /** @throws {CniError} 102 where another flow set has another flow in a place, or the number of a group; nothing has changed then */
  apply(changes: KeyedChanges): Difference {
    const back = new Map([...changes.keys()].map((key) => [key, this.#all.get(key)]));
    this.#replace(changes);
    const conflict = this.#claim(changes);
    if (conflict !== undefined) {
      this.#replace(back);
      this.#claim(back);
      throw conflict;
    }
    return { ...differenceOf(back, changes, this.#places, this.#groups), back };
  }

  /** The flow sets as they are then, without a claim to any place. */
  #replace(changes: KeyedChanges): void {
    for (const [key, flowSet] of changes) {
      const before = this.#all.get(key);
      // A failed claim may have left some to others.
      for (const place of before?.flows.keys() ?? []) this.#leave(place, key);
      for (const id of before?.groups.keys() ?? []) if (this.#groups.get(id) === key) this.#groups.delete(id);
      if (flowSet === undefined) this.#all.delete(key);
      else this.#all.set(key, flowSet);
    }
  }

  #leave(place: string, key: string): void {
    const others = this.#places.get(place)?.filter((holder) => holder !== key) ?? [];
    if (others.length > 0) this.#places.set(place, others);
    else this.#places.delete(place);
  }

  #claim(changes: KeyedChanges): CniError | undefined {
    for (const [key, flowSet] of changes) {
      for (const [place, flow] of flowSet?.flows ?? []) {
        const holders = (this.#places.get(place) ?? []).filter((holder) => holder !== key);
        const other = holders.find((holder) => !sameButCookie(this.#all.get(holder)?.flows.get(place), flow));
        if (other !== undefined) return taken(key, `flow "${flowText(flow)}"`, other);
        this.#places.set(place, [...holders, key]);
      }
      for (const id of flowSet?.groups.keys() ?? []) {
        const holder = this.#groups.get(id);
        if (holder !== undefined && holder !== key) return taken(key, `group ${id}`, holder);
        this.#groups.set(id, key);
      }
    }
    return undefined;
  }
}

const taken = (key: string, what: string, holder: string): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot put "${key}" into the switch: "${holder}" has the place of its ${what}, wanted a place for each`,
  );

function differenceOf(
  before: KeyedChanges,
  after: KeyedChanges,
  places: ReadonlyMap<string, unknown>,
  groups: ReadonlyMap<number, unknown>,
): Omit<Difference, "back"> {
  // What one flow set gives up another of the same change may take over.
  const was = new Map([...before.values()].flatMap((flowSet) => [...(flowSet?.flows ?? [])]));
  const wasGroup = new Map([...before.values()].flatMap((flowSet) => [...(flowSet?.groups ?? [])]));
  const is = [...after.values()].filter((flowSet) => flowSet !== undefined);
  return {
    deletedFlows: [...was].filter(([place]) => !places.has(place)).map(([, flow]) => flow),
    addedFlows: is.flatMap(({ flows }) =>
      [...flows].filter(([place, flow]) => !same(was.get(place), flow)).map(([, flow]) => flow),
    ),
    deletedGroups: [...wasGroup.keys()].filter((id) => !groups.has(id)),
    setGroups: is.flatMap(({ groups: own }) =>
      [...own.values()].filter((group) => !same(wasGroup.get(group.id), group)),
    ),
  };
}

/** Both are plain data. */
const same = (a: unknown, b: unknown): boolean => Bun.deepEquals(a, b);

const sameButCookie = (a: Flow | undefined, b: Flow): boolean => a !== undefined && same({ ...a, cookie: b.cookie }, b);
