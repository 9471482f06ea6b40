import { describe, expect, test } from "vitest";
import { random } from "../../support/random.ts";
import { seed } from "../../support/seed.ts";
import { faults } from "../kinds/index.ts";
import { type Lie, LyingNode } from "../node/lying-node.ts";
import { growthOf, type Sample } from "../soak/growth.ts";
import { runSoak, type SoakReport } from "../soak/soak-run.ts";

/** Those that a node of any kind can meet. */
const common = faults.filter(({ on }) => on.includes("bridge") && on.includes("ovs") && on.includes("hns"));

function soak(lie?: Lie): Promise<SoakReport> {
  const node = new LyingNode(lie);
  return runSoak({ node, faults: common, seconds: 2, now: () => node.seconds, seed, quietMs: 30, faultMs: 10 });
}

describe("a workload", () => {
  test("is content with a node that keeps its promises, through every fault", async () => {
    const report = await soak();
    expect(report.wrong).toEqual([]);
    expect(report.calls).toBeGreaterThan(200);
    expect(Object.keys(report.faults).sort()).toEqual(common.map(({ name }) => name).sort());
    expect(report.growth.map(({ of }) => of)).toContain("descriptors");
  });

  const lies: readonly (readonly [Lie, RegExp])[] = [
    ["one address twice", /^10\.0\.0\.\d+ has been given to \w+ while \w+ has it/],
    ["another answer to the same ADD", /^\w+: ADD again answered .* at first /],
    ["a pod without network", /^\w+ does not reach its gateway/],
    ["a call beyond its deadline", /^\w+ .*ok, 1000000 ms.*, wanted \d+ ms at most/],
    ["a refusal for no reason", /^\w+ \w+ code 102: Cannot do it/],
    ["a plugin that dies", /^\w+ \w+ died: ended by a signal/],
    ["no address at all", /ADD answered no address/],
    ["garbage collected too eagerly", /not of one mind: \d+ leases, \d+ pods|does not reach its gateway|code 103/],
    ["leases of two minds", /^the node is not of one mind: a lease belongs to nobody/],
    ["an agent that starts anew", /is frozen: the agent is another process/],
    ["a descriptor that stays open", /^the agent's descriptors grew from \d/],
  ];
  test.concurrent.each(lies)("finds %s", async (lie, wanted) => {
    const { wrong, events } = await soak(lie);
    expect(wrong[0]).toMatch(wanted);
    expect(events.length).toBeGreaterThan(0);
  });
});

describe("growth", () => {
  const noise = random(seed);
  /** Looks once in fifteen seconds over an hour. */
  const looks = (residentMb: (i: number) => number, threads: (i: number) => number = () => 8): readonly Sample[] =>
    Array.from({ length: 240 }, (_, i) => ({
      seconds: i * 15,
      residentMb: residentMb(i),
      descriptors: 16 + noise(3),
      threads: threads(i),
      databaseKb: 60 + noise(400),
    }));
  const grown = (samples: readonly Sample[]): readonly string[] =>
    growthOf(samples).flatMap(({ of, grows }) => (grows ? [of] : []));

  test("is not a heap that breathes, nor its first minutes, nor a single high look", () => {
    expect(grown(looks(() => 70 + noise(25)))).toEqual([]);
    expect(grown(looks((i) => Math.min(90, 60 + i) + noise(5)))).toEqual([]);
    expect(grown(looks((i) => 70 + (i % 50) / 2))).toEqual([]);
    expect(grown(looks((i) => (i === 200 ? 500 : 70)))).toEqual([]);
  });

  test("is what goes up all the time, however slowly", () => {
    expect(grown(looks((i) => 70 + i / 4 + noise(10)))).toEqual(["residentMb"]);
    expect(
      grown(
        looks(
          () => 70,
          (i) => 8 + Math.floor(i / 30),
        ),
      ),
    ).toEqual(["threads"]);
  });

  test("of memory is told from ten minutes on, of threads sooner", () => {
    const short = looks(
      (i) => 70 + 5 * i,
      (i) => 8 + Math.floor(i / 5),
    ).slice(0, 40);
    expect(grown(short)).toEqual(["threads"]);
  });

  test("says nothing after a few looks", () => {
    expect(growthOf(looks(() => 70).slice(0, 8))).toEqual([]);
  });
});
