import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { etcdFaults } from "./kinds/etcd.ts";
import { faults } from "./kinds/index.ts";
import { ovsFaults } from "./kinds/ovs.ts";
import { OvsNode } from "./node/ovs-node.ts";
import type { Fault } from "./workload/fault.ts";
import { Workload } from "./workload/workload.ts";

/** How long each lasts: by default one that is short enough for a call to be under way from its start to its end. */
const lastsMs = Number(process.env["PIPETTE_FAULT_MS"] ?? 700);
/** With `all`, each of them both with load and without; else the seed says which. */
const both = process.env["PIPETTE_FAULTS"] === "all";
const pairs = Number(process.env["PIPETTE_FAULT_PAIRS"] ?? 1);
/** What strikes a kernel bridge as well is looked at there in a run of all tests. */
const all = faults.filter(({ on }) => on.includes("ovs") && (both || !on.includes("bridge")));

describeWith("Open vSwitch and etcd fail under pods", ["root", "openvswitch", "etcd", "nft", "gcc", "strace"], () => {
  let node: OvsNode;
  const chance = random(seed);

  const begin = async (): Promise<void> => {
    const plugin = { addTimeoutMs: 5_000, delTimeoutMs: 2_000 };
    node = await OvsNode.start({ clock: true, dataDirMb: 24, plugin });
  };
  beforeAll(begin, 180_000);
  afterEach(async ({ task }) => {
    // What one test has left is no fault of the next.
    if (task.result?.state !== "fail") return;
    await node[Symbol.asyncDispose]();
    await begin();
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  /** All of them are in force at the same time. */
  async function endures(faults: readonly Fault[], load: boolean): Promise<void> {
    const workload = new Workload(node, { seed, lanes: 3, podsPerLane: 3 });
    workload.begin();
    await Bun.sleep(300);
    if (!load) await workload.rest();
    await Promise.all(faults.map((fault) => workload.endure(fault, chance, lastsMs)));
    // Whoever has lost its network is made anew.
    workload.begin();
    await workload.judge();
    await workload.end();
    const evidence = workload.failed ? await node.evidence(workload.pods) : [];
    const happened = [...workload.events.last().slice(-80), ...node.agentLog().slice(-15), ...evidence];
    expect(workload.violations, happened.join("\n")).toEqual([]);
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
      });
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
