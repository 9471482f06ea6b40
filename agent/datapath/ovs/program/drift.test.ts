import { describe, expect, test } from "vitest";
import { createLogger } from "../../../../shared/log.ts";
import { type Flow, flow, group, match, type OpenFlowMeter, output } from "../../../protocols/openflow/mod.ts";
import { Category, cookieOf, learnedBit } from "../pipeline/cookie.ts";
import { newConnectionMeter } from "../pipeline/mod.ts";
import { driftBeside, driftIn, driftLoop, driftOf, driftText, type SwitchContents } from "./drift.ts";
import { keyFlowSet } from "./flow-set.ts";
import { FlowSets } from "./flow-sets.ts";

const round = 3;
const numbered = (priority: number, port = 1): Flow =>
  flow({ table: 5, priority, match: match().set("in_port", 2).build(), actions: [output(port)] });
const grouped = (id: number, port = 1) => group(id, "select", [{ actions: [output(port)] }]);
const meter = newConnectionMeter(4);

const sets = new FlowSets();
const wanted = keyFlowSet(
  "a",
  { category: Category.pod, flows: [numbered(1), numbered(2)], groups: [grouped(7), grouped(8)] },
  round,
  9,
);
sets.apply(new Map([["a", wanted]]));
const flows = [...wanted.flows.values()];
const [one, two] = flows as [Flow, Flow];
const sound: SwitchContents = { flows, groups: [grouped(7), grouped(8)], meters: [meter] };
const text = (changes: Partial<SwitchContents>): readonly string[] =>
  driftText(driftOf(sets, round, { ...sound, ...changes }));

test("what an earlier start has left of a category is no change by others, until that is complete", () => {
  const left = (category: Category): Flow => ({ ...numbered(30 + category), cookie: cookieOf(2, category, 1) });
  const contents = { ...sound, flows: [...flows, left(Category.service)], groups: [...sound.groups, grouped(99)] };
  const found = (given: SwitchContents) => driftText(driftBeside(Category.service, driftOf(sets, round, given)));
  expect(found(contents)).toEqual([]);
  expect(found({ ...contents, flows: [one, left(Category.service), left(Category.pod)] })).toEqual([
    expect.stringContaining("the switch lacks 1 flow,"),
    expect.stringContaining("the switch has 1 flow of somebody else"),
  ]);
});

const traced = cookieOf(1, Category.trace, 1);

describe("a switch that somebody has changed", () => {
  test.each<readonly [string, Partial<SwitchContents>, readonly string[]]>([
    ["not at all", {}, []],
    [
      "lacks a flow",
      { flows: [two] },
      [expect.stringMatching(/^the switch lacks 1 flow, the first "cookie=0x3010000000009, table=5, priority=1,/)],
    ],
    [
      "lacks all",
      { flows: [] },
      [expect.stringMatching(/^the switch lacks 2 flows, the first "cookie=0x3010000000009, table=5, priority=1,/)],
    ],
    [
      "has another in its place",
      { flows: [{ ...one, actions: [output(9)] }, two] },
      [expect.stringContaining("the switch lacks 1 flow,")],
    ],
    [
      "has it of an earlier start",
      { flows: [{ ...one, cookie: cookieOf(2, Category.pod, 9) }, two] },
      [expect.stringContaining("lacks 1 flow,")],
    ],
    [
      "has it of another set and with other flags",
      { flows: [{ ...one, cookie: cookieOf(3, Category.node), flags: ["sendFlowRem"] } as never, two] },
      [],
    ],
    [
      "has flows of its own",
      { flows: [...flows, numbered(4), numbered(5)] },
      [expect.stringMatching(/^the switch has 2 flows of somebody else, the first "table=5, priority=4,/)],
    ],
    ["has some of a trace, which end", { flows: [...flows, { ...numbered(4), cookie: traced, hardTimeout: 10 }] }, []],
    [
      "has some that say so, and stay",
      { flows: [...flows, { ...numbered(4), cookie: traced }] },
      [expect.stringContaining("1 flow of somebody else")],
    ],
    ["has learned some", { flows: [...flows, { ...numbered(4), cookie: learnedBit }] }, []],
    ["lacks a group", { groups: [grouped(8)] }, ["the switch lacks 1 group, the first 7"]],
    ["has other buckets", { groups: [grouped(7), grouped(8, 9)] }, ["the switch lacks 1 group, the first 8"]],
    [
      "has more groups",
      { groups: [...sound.groups, grouped(9), grouped(10)] },
      ["the switch has 2 groups of somebody else, the first 9"],
    ],
    [
      "has another rate",
      { meters: [{ ...meter, rate: meter.rate + 1 } as OpenFlowMeter] },
      ["the switch has another rate in 1 meter, the first 4"],
    ],
    [
      "has nothing right",
      { flows: [numbered(4)], groups: [grouped(9)] },
      [
        expect.stringContaining("lacks 2 flows"),
        expect.stringContaining("has 1 flow of somebody else"),
        "the switch lacks 2 groups, the first 7",
        "the switch has 1 group of somebody else, the first 9",
      ],
    ],
  ])("%s", (_what, changes, told) => {
    expect(text(changes)).toEqual(told);
  });

  test("is told of some tables, or of all but these and the rest of the switch", () => {
    const drift = driftOf(sets, round, { flows: [numbered(4)], groups: [grouped(9)], meters: [] });
    const found = driftIn({ tables: [one.table] }, drift);
    const [missing, foreign] = [drift.missing.filter((flow) => flow.table === one.table), [numbered(4)]];
    expect(found.missing).toEqual(missing);
    expect(missing.length).toBeGreaterThan(0);
    expect({ ...found, missing: [], foreign: [] }).toEqual({
      ...{ missing: [], foreign: [], groups: [], foreignGroups: [], meters: [] },
    });
    const others = driftIn({ allBut: [one.table] }, drift);
    expect([...found.missing, ...others.missing].length).toBe(drift.missing.length);
    expect([...found.foreign, ...others.foreign]).toEqual(foreign);
    expect([others.groups, others.foreignGroups]).toEqual([drift.groups, drift.foreignGroups]);
  });

  test("is repaired by what differs alone", () => {
    const other = newConnectionMeter(5);
    const drift = driftOf(sets, round, {
      flows: [two, numbered(4)],
      groups: [grouped(7, 2), grouped(9)],
      meters: [{ ...meter, rate: 1 }, other],
    });
    expect(drift).toEqual({
      missing: [one],
      foreign: [numbered(4)],
      groups: [grouped(7), grouped(8)],
      foreignGroups: [9],
      meters: [meter],
    });
  });
});

test("what is found is told of, when it is looked for and from time to time", async () => {
  const lines: string[] = [];
  let looks = 0;
  let found: readonly string[] = [];
  const look = async () => {
    looks++;
    return found;
  };
  await using loop = driftLoop({ look, logger: createLogger("info", (line) => lines.push(line)), everyMs: 1 });
  await loop.run();
  expect(lines).toEqual([]);
  found = ["the switch lacks 1 group, the first 7"];
  await expect.poll(() => lines.join()).toContain("somebody else has changed the switch");
  expect(lines[0]).toContain("the first 7");
  expect(looks).toBeGreaterThan(1);
});
