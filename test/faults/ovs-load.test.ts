import { afterAll, beforeAll, expect, test } from "vitest";
import type { Fault } from "../stress/fault.ts";
import { etcdFaults } from "../stress/faults/etcd.ts";
import { ovsFaults } from "../stress/faults/ovs.ts";
import { OvsNode } from "../stress/ovs-node.ts";
import { Workload } from "../stress/workload.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";

const seed = Number(process.env["PIPETTE_SEED"] ?? Date.now() % 1_000_000);
/** How long each lasts: by default one that is short enough for a call to be under way from its start to its end. */
const lastsMs = Number(process.env["PIPETTE_FAULT_MS"] ?? 700);
/** With `all`, each of them both with load and without; else the seed says which. */
const both = process.env["PIPETTE_FAULTS"] === "all";
const pairs = Number(process.env["PIPETTE_FAULT_PAIRS"] ?? 1);
const all = [...ovsFaults, ...etcdFaults];

describeWith("Open vSwitch and etcd fail under pods", ["root", "openvswitch", "etcd", "nft"], () => {
  let node: OvsNode;
  const chance = random(seed);

  beforeAll(async () => {
    node = await OvsNode.start({ plugin: { addTimeoutMs: 5_000, delTimeoutMs: 2_000 } });
  }, 180_000);
  afterAll(() => node?.[Symbol.asyncDispose]());

  /** All of them are in force at the same time. */
  async function endures(faults: readonly Fault[], load: boolean): Promise<void> {
    const workload = new Workload(node, { seed, lanes: 3, podsPerLane: 3 });
    workload.begin();
    await Bun.sleep(300);
    if (!load) await workload.rest();
    await Promise.all(faults.map((fault) => workload.endure(fault, chance, lastsMs)));
    await workload.judge();
    await workload.end();
    expect(workload.violations, workload.events.last().join("\n")).toEqual([]);
  }

  test("the doctor waits for the registry as long as that takes to answer, and no longer", async () => {
    const from = performance.now();
    await node.repair();
    // Its own bound for one that says nothing.
    expect(performance.now() - from).toBeLessThan(8_000);
  });

  for (const fault of all) {
    const underLoad = chance(2) === 0;
    for (const load of both ? [false, true] : [underLoad])
      test(`${fault.name}, ${load ? "while pods come and go" : "while nothing else happens"} (seed ${seed})`, async () => {
        await endures([fault], load);
      }, 120_000);
  }

  test.each(Array.from({ length: pairs }, (_, i) => i))(
    `two at a time, pair %i (seed ${seed})`,
    async () => {
      const first = ovsFaults[chance(ovsFaults.length)];
      const second = etcdFaults[chance(etcdFaults.length)];
      await endures(
        [first, second].filter((fault) => fault !== undefined),
        true,
      );
    },
    120_000,
  );
});
