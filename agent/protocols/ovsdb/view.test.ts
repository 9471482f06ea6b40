import { describe, expect, test } from "vitest";
import { random } from "../../../test/support/random.ts";
import { readUpdates, type UpdateForm } from "./monitor.ts";
import { parseUuid, type Uuid } from "./values.ts";
import { type Monitored, type RowChange, View } from "./view.ts";

const uuid = (n: number): Uuid => parseUuid(`00000000-0000-4000-8000-${String(n).padStart(12, "0")}`) as Uuid;

const monitored = {
  Bridge: ["name", "ports"],
  Port: ["name", "tag", "trunks", "external_ids"],
} as const satisfies Monitored;

/** A view that has been told its first state. */
function viewOf(state: unknown = {}, form: UpdateForm = "update2"): View<typeof monitored> {
  const view = new View(monitored);
  view.replace(readUpdates(form, monitored, state, () => undefined));
  return view;
}

function update(view: View<typeof monitored>, json: unknown, form: UpdateForm = "update2"): readonly RowChange[] {
  const known = (table: string, id: Uuid) => view.rows(table as "Port").get(id);
  const changes = readUpdates(form, monitored, json, known);
  view.apply(changes);
  return changes;
}

describe("a view", () => {
  const port = { name: "p1", tag: 5, trunks: ["set", [1, 2]], external_ids: ["map", [["a", "b"]]] };

  test("has the first state, with defaults for what is left out", () => {
    const view = viewOf({ Port: { [uuid(1)]: { initial: port }, [uuid(2)]: { initial: {} } } });
    expect(view.isCurrent).toBe(true);
    expect(view.row("Port", uuid(1))).toEqual({
      _uuid: uuid(1),
      name: "p1",
      tag: 5,
      trunks: new Set([1, 2]),
      external_ids: new Map([["a", "b"]]),
    });
    expect(view.row("Port", uuid(2))).toEqual({
      _uuid: uuid(2),
      name: "",
      tag: undefined,
      trunks: new Set(),
      external_ids: new Map(),
    });
    expect([...view.rows("Bridge")]).toEqual([]);
  });

  test("takes differences: of sets, of maps, of single values; earlier rows stay as they were", () => {
    const view = viewOf({ Port: { [uuid(1)]: { initial: port } } });
    const before = view.row("Port", uuid(1));
    const external = [
      "map",
      [
        ["a", "b"],
        ["c", "d"],
      ],
    ];
    update(view, {
      Port: { [uuid(1)]: { modify: { tag: ["set", []], trunks: ["set", [2, 3]], external_ids: external } } },
    });
    expect(view.row("Port", uuid(1))).toEqual({
      _uuid: uuid(1),
      name: "p1",
      tag: undefined,
      trunks: new Set([1, 3]),
      external_ids: new Map([["c", "d"]]),
    });
    expect(before).toMatchObject({ tag: 5, trunks: new Set([1, 2]) });
    update(view, { Port: { [uuid(1)]: { modify: { tag: 9, trunks: 1, external_ids: ["map", [["c", "e"]]] } } } });
    expect(view.row("Port", uuid(1))).toMatchObject({
      tag: 9,
      trunks: new Set([3]),
      external_ids: new Map([["c", "e"]]),
    });
  });

  test("takes whole rows from servers that send those", () => {
    const view = viewOf({ Port: { [uuid(1)]: { new: port } } }, "update");
    update(view, { Port: { [uuid(1)]: { old: { tag: 5 }, new: { ...port, tag: 6 } } } }, "update");
    expect(view.named("Port", "p1")?.tag).toBe(6);
    update(view, { Port: { [uuid(1)]: { old: port } } }, "update");
    expect(view.rows("Port").size).toBe(0);
  });

  test("finds by name, also where one transaction replaces a row by another of its name", () => {
    const view = viewOf({ Port: { [uuid(1)]: { initial: { name: "p" } } } });
    update(view, { Port: { [uuid(2)]: { insert: { name: "p", tag: 2 } }, [uuid(1)]: { delete: null } } });
    expect(view.named("Port", "p")).toMatchObject({ _uuid: uuid(2) });
    update(view, { Port: { [uuid(2)]: { modify: { name: "q" } } } });
    expect(view.named("Port", "p")).toBeUndefined();
    expect(view.named("Port", "q")).toMatchObject({ _uuid: uuid(2) });
    update(view, { Port: { [uuid(2)]: { delete: null } } });
    expect(view.named("Port", "q")).toBeUndefined();
  });

  test("is not current without a connection, and says afterwards what is different", () => {
    const stays = { initial: { name: "a", trunks: ["set", [1, 2]], external_ids: ["map", [["x", "y"]]] } };
    const same = { initial: { external_ids: ["map", [["x", "y"]]], trunks: ["set", [2, 1]], name: "a" } };
    const view = viewOf({
      Port: { [uuid(1)]: stays, [uuid(2)]: { initial: { name: "b" } }, [uuid(3)]: { initial: { name: "c" } } },
    });
    view.outdate();
    expect(view.isCurrent).toBe(false);
    expect(view.named("Port", "b")).toBeDefined();
    const state = { [uuid(1)]: same, [uuid(3)]: { initial: { name: "d" } }, [uuid(4)]: { initial: { name: "e" } } };
    const changes = view.replace(readUpdates("update2", monitored, { Port: state }, () => undefined));
    expect(view.isCurrent).toBe(true);
    expect(changes.map(({ uuid: id, before, after }) => [id, before?.["name"], after?.["name"]])).toEqual([
      [uuid(3), "c", "d"],
      [uuid(4), undefined, "e"],
      [uuid(2), "b", undefined],
    ]);
    expect([...view.rows("Port").keys()].sort()).toEqual([uuid(1), uuid(3), uuid(4)]);
  });

  test("says that a row is different where only one value is, of whatever kind", () => {
    const row = { name: "p", tag: 5, trunks: ["set", [1, 2]], external_ids: ["map", [["a", "b"]]] };
    const differing = [
      { tag: ["set", []] },
      { tag: 6 },
      { trunks: ["set", [1, 3]] },
      { trunks: 1 },
      { external_ids: ["map", [["a", "c"]]] },
      { external_ids: ["map", [["c", "b"]]] },
      { external_ids: ["map", []] },
    ];
    for (const more of [{}, ...differing]) {
      const view = viewOf({ Port: { [uuid(1)]: { initial: row } } });
      const state = { Port: { [uuid(1)]: { initial: { ...row, ...more } } } };
      const changes = view.replace(readUpdates("update2", monitored, state, () => undefined));
      expect(changes).toHaveLength(Object.keys(more).length);
    }
  });

  test("holds so many rows and no more", () => {
    const view = new View(monitored, 3);
    view.replace([]);
    update(view, {
      Port: { [uuid(1)]: { insert: {} }, [uuid(2)]: { insert: {} } },
      Bridge: { [uuid(3)]: { insert: {} } },
    });
    update(view, {
      Port: { [uuid(1)]: { delete: null }, [uuid(4)]: { insert: {} }, [uuid(2)]: { modify: { tag: 1 } } },
    });
    expect(() => update(view, { Port: { [uuid(5)]: { insert: {} } } })).toThrow("there are more than 3 rows");
  });
});

describe("updates that cannot be", () => {
  const known = { Port: { [uuid(1)]: { initial: { name: "p" } } } };
  const bad: readonly [what: string, form: UpdateForm, json: unknown, is: RegExp][] = [
    ["no tables", "update2", [], /the tables are \[\]/],
    ["a table not asked for", "update2", { Interface: {} }, /table "Interface" was not asked for/],
    ["a table of every object", "update2", { constructor: {} }, /table "constructor" was not asked for/],
    ["no rows", "update2", { Port: 5 }, /the rows of Port are 5/],
    ["no UUID", "update2", { Port: { p: { delete: null } } }, /a row of Port is called "p"/],
    ["no update", "update2", { Port: { [uuid(1)]: null } }, /of Port is null/],
    ["an empty one", "update2", { Port: { [uuid(1)]: {} } }, /none of initial, insert, modify and delete/],
    ["an empty whole one", "update", { Port: { [uuid(1)]: {} } }, /neither "old" nor "new"/],
    ["a row that comes twice", "update2", { Port: { [uuid(1)]: { insert: {} } } }, /comes, and was there/],
    ["a change of no row", "update2", { Port: { [uuid(2)]: { modify: {} } } }, /changes, and was not there/],
    ["the end of no row", "update2", { Port: { [uuid(2)]: { delete: null } } }, /goes, and was not there/],
    ["the end of no whole row", "update", { Port: { [uuid(2)]: { old: {} } } }, /goes, and was not there/],
    ["a row that is none", "update2", { Port: { [uuid(2)]: { insert: 5 } } }, /a row of Port is 5/],
    [
      "a wrong value",
      "update2",
      { Port: { [uuid(1)]: { modify: { tag: "x" } } } },
      /column "tag" of a row of Port: an/,
    ],
    [
      "no set",
      "update2",
      { Port: { [uuid(1)]: { modify: { trunks: ["set"] } } } },
      /column "trunks".*a set is \["set"\]/,
    ],
    ["no map", "update2", { Port: { [uuid(1)]: { modify: { external_ids: "x" } } } }, /a map is "x"/],
    ["no pair", "update2", { Port: { [uuid(1)]: { modify: { external_ids: ["map", [1]] } } } }, /pair is 1/],
  ];
  test.each(bad)("%s", (_, form, json, is) => {
    const view = viewOf(known);
    expect(() => update(view, json, form)).toThrow(is);
    // Nothing of it was taken.
    expect([...view.rows("Port").values()].map(({ name }) => name)).toEqual(["p"]);
  });
});

interface ModelPort {
  name: string;
  tag: number | undefined;
  trunks: Set<number>;
  external_ids: Map<string, string>;
}

const rounds = Number(process.env["PIPETTE_FUZZ_ROUNDS"] ?? 100);

describe("random histories", () => {
  const setOf = (values: Iterable<unknown>): unknown => ["set", [...values]];
  const mapOf = (pairs: Iterable<readonly [unknown, unknown]>): unknown => ["map", [...pairs]];
  const whole = ({ name, tag, trunks, external_ids }: ModelPort): Record<string, unknown> => ({
    name,
    tag: tag ?? setOf([]),
    trunks: setOf(trunks),
    external_ids: mapOf(external_ids),
  });
  /** As ovsdb-server works it out, written down independently of the view's arithmetic. */
  const difference = (was: ModelPort, is: ModelPort): Record<string, unknown> => {
    const pairs = [...is.external_ids].filter(([key, value]) => was.external_ids.get(key) !== value);
    const gone = [...was.external_ids].filter(([key]) => !is.external_ids.has(key));
    const elements = [1, 2, 3, 4, 5].filter((element) => was.trunks.has(element) !== is.trunks.has(element));
    return {
      ...(was.name === is.name ? {} : { name: is.name }),
      ...(was.tag === is.tag ? {} : { tag: is.tag ?? setOf([]) }),
      ...(elements.length === 0 ? {} : { trunks: elements.length === 1 ? elements[0] : setOf(elements) }),
      ...(pairs.length + gone.length === 0 ? {} : { external_ids: mapOf([...pairs, ...gone]) }),
    };
  };

  test("lead to the same rows by differences, by whole rows and by the model", () => {
    for (let seed = 1; seed <= rounds; seed++) {
      const next = random(seed);
      const model = new Map<Uuid, ModelPort>();
      const views = { update: viewOf({}, "update"), update2: viewOf({}, "update2") };
      const anyPort = (): ModelPort => ({
        name: `p${next(6)}`,
        tag: next(2) === 0 ? undefined : next(3),
        trunks: new Set([1, 2, 3, 4, 5].filter(() => next(2) === 0)),
        external_ids: new Map(["a", "b", "c"].filter(() => next(2) === 0).map((key) => [key, String(next(3))])),
      });
      for (let step = 0; step < 20; step++) {
        const [updates, updates2]: [Record<string, unknown>, Record<string, unknown>] = [{}, {}];
        for (const id of [uuid(next(4)), uuid(4 + next(4))]) {
          const was = model.get(id);
          if (was !== undefined && next(3) === 0) {
            model.delete(id);
            updates[id] = { old: whole(was) };
            updates2[id] = { delete: null };
          } else {
            const is = anyPort();
            model.set(id, is);
            updates[id] = { ...(was === undefined ? {} : { old: {} }), new: whole(is) };
            updates2[id] = was === undefined ? { insert: whole(is) } : { modify: difference(was, is) };
          }
        }
        update(views.update, { Port: updates }, "update");
        update(views.update2, { Port: updates2 }, "update2");
        const expected = new Map([...model].map(([id, port]) => [id, { _uuid: id, ...port }]));
        expect(views.update.rows("Port")).toEqual(expected);
        expect(views.update2.rows("Port")).toEqual(expected);
      }
    }
  });
});
