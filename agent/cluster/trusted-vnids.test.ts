import { expect, test } from "vitest";
import { random } from "../../test/support/random.ts";
import { trustedVnids } from "./trusted-vnids.ts";

type Vnids = Readonly<Record<string, number>>;

function trusted(told: Vnids, confirmed: Vnids = {}, known: Vnids = {}) {
  const maps = [told, confirmed, known].map((each) => new Map(Object.entries(each)));
  const { taken, refused } = trustedVnids(...(maps as [Map<string, number>, Map<string, number>, Map<string, number>]));
  return { taken: Object.fromEntries(taken), refused };
}

test("what nodes allocate counts at once: a number for one project, and 0 for the privileged one", () => {
  const told = { default: 0, red: 10, blue: 11 };
  expect(trusted(told)).toEqual({ taken: told, refused: [] });
});

test.each([
  ["that of another project", 11, ', that of "blue",'],
  ["that of all", 0, ", with which all projects reach it,"],
  ["one that is free", 99, " 99, and no person"],
])("a project that is known stays what it was when its number becomes %s", (_what, vnid, is) => {
  const known = { red: 10, blue: 11 };
  const { taken, refused } = trusted({ blue: 11, red: vnid }, {}, known);
  expect(taken).toEqual(known);
  expect(refused).toEqual([expect.stringContaining('project "red" stays with VNID 10 here: the registry says')]);
  expect(refused[0]).toContain(is);
  expect(refused[0]).toContain(`"pipette tenants confirm red ${vnid}"`);
  // With whoever has it, as the command does it.
  expect(trusted({ blue: 11, red: vnid }, { red: vnid, blue: 11 }, known)).toEqual({
    taken: { blue: 11, red: vnid },
    refused: [],
  });
});

test("what a person confirmed once is no word for another number", () => {
  expect(trusted({ red: 11, blue: 11 }, { red: 10 }, { red: 10, blue: 11 }).taken).toEqual({ red: 10, blue: 11 });
});

test("a new project gets no number that another has, and none for all", () => {
  const { taken, refused } = trusted({ red: 10, evil: 10, worse: 0 }, {}, { red: 10 });
  expect(taken).toEqual({ red: 10 });
  expect(refused).toEqual([
    expect.stringContaining('project "evil" has no VNID here: the registry says 10, that of "red"'),
    expect.stringContaining('project "worse" has no VNID here: the registry says 0'),
  ]);
});

test("on a node that knows nothing yet the older number counts, and what was joined where it is confirmed", () => {
  expect(trusted({ blue: 10, red: 10 }).taken).toEqual({ blue: 10 });
  expect(trusted({ blue: 10, red: 10 }, { red: 10 }).taken).toEqual({ red: 10 });
  expect(trusted({ blue: 10, red: 10 }, { red: 10, blue: 10 }).taken).toEqual({ red: 10, blue: 10 });
});

test("what an upgraded node knew it keeps, joined and global ones too, without anybody's confirmation", () => {
  const known = { default: 0, system: 0, red: 10, blue: 10 };
  expect(trusted(known, {}, known)).toEqual({ taken: known, refused: [] });
});

test("a number that a person confirmed for one project lets it into no other that has come to it since", () => {
  expect(trusted({ evil: 10, red: 10 }, { red: 10 }, { evil: 10 }).taken).toEqual({ evil: 10 });
});

test("who has missed it all goes by what people did meanwhile, also where a number has gone from one to others", () => {
  const told = { red: 11, blue: 12, green: 11 };
  expect(trusted(told, told, { red: 10, blue: 11 })).toEqual({ taken: told, refused: [] });
});

test("a project that the registry has lost keeps its number, and nobody gets it meanwhile", () => {
  const { taken, refused } = trusted({ evil: 10 }, {}, { red: 10 });
  expect(taken).toEqual({ red: 10 });
  expect(refused).toHaveLength(1);
  expect(trusted({ red: 12 }, {}, { red: 10 }).taken).toEqual({ red: 10 });
});

test("whatever is written, no two projects come together, and none becomes global, that nobody has confirmed", () => {
  const below = random(11);
  const names = ["a", "b", "c", "d", "e"];
  for (let round = 0; round < 300; round++) {
    let known: ReadonlyMap<string, number> = new Map();
    const told = new Map<string, number>();
    const confirmed = new Map<string, number>();
    for (let step = 0; step < 20; step++) {
      const name = names[below(5)]!;
      const vnid = below(4) === 0 ? 0 : 10 + below(4);
      if (below(5) === 0) told.delete(name);
      else told.set(name, vnid);
      if (below(6) === 0) confirmed.set(name, vnid);
      const before = known;
      known = trustedVnids(told, confirmed, known).taken;
      for (const [project, now] of known) {
        if (before.get(project) === now) continue;
        if (confirmed.get(project) !== now) expect([before.has(project), now === 0]).toEqual([false, false]);
        if (now === 0) continue;
        for (const [other, its] of known)
          if (other !== project) expect(its === now && confirmed.get(other) !== now).toBe(false);
      }
    }
  }
});
