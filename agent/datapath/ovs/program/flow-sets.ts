import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Flow, flowText, type OpenFlowGroup } from "../../../protocols/openflow/mod.ts";
import type { KeyedFlowSet } from "./flow-set.ts";

export type KeyedChanges = ReadonlyMap<string, KeyedFlowSet | undefined>;

/** The difference between two states of the switch. */
export interface Difference {
  readonly deletedFlows: readonly Flow[];
  /** New and changed flows. */
  readonly addedFlows: readonly Flow[];
  readonly deletedGroups: readonly number[];
  readonly setGroups: readonly OpenFlowGroup[];
  /** The changes that undo this. */
  readonly back: KeyedChanges;
}

/**
 * The wanted flow sets by key. A flow belongs to one flow set, or to several that contain the same flow (two nodes that
 * claim one MAC), and is removed with the last of them. A group's number belongs to one flow set.
 */
export class FlowSets {
  readonly #all = new Map<string, KeyedFlowSet>();
  readonly #places = new Map<string, readonly string[]>();
  readonly #groups = new Map<number, string>();

  get all(): ReadonlyMap<string, KeyedFlowSet> {
    return this.#all;
  }

  /** How many different flows there are, by the number of their table. */
  get sizes(): ReadonlyMap<number, number> {
    const sizes = new Map<number, number>();
    for (const place of this.#places.keys()) {
      const table = Number.parseInt(place, 10);
      sizes.set(table, (sizes.get(table) ?? 0) + 1);
    }
    return sizes;
  }

  hasGroup(id: number): boolean {
    return this.#groups.has(id);
  }

  /**
   * @throws {CniError} 102 if another flow set has a different flow in the same place, or the group's number; then
   * nothing has changed
   */
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

  /** Stores the flow sets, without claiming places. */
  #replace(changes: KeyedChanges): void {
    for (const [key, flowSet] of changes) {
      const before = this.#all.get(key);
      // After a failed claim some places may belong to others.
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
        const standing = this.#places.get(place);
        // As nearly all are.
        if (standing === undefined) {
          this.#places.set(place, [key]);
          continue;
        }
        const holders = standing.filter((holder) => holder !== key);
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
    `Cannot put "${key}" into the switch: "${holder}" has the place of its ${what}`,
  );

function differenceOf(
  before: KeyedChanges,
  after: KeyedChanges,
  places: ReadonlyMap<string, unknown>,
  groups: ReadonlyMap<number, unknown>,
): Omit<Difference, "back"> {
  // A place that one flow set gives up may be claimed by another in the same change.
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
