import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { faults } from "./kinds/index.ts";
import { BridgeNode } from "./node/bridge-node.ts";
import type { Fault } from "./workload/fault.ts";
import { Workload } from "./workload/workload.ts";

/** With `all`, each of them both with load and without; else the seed says which. */
const all = process.env["PIPETTE_FAULTS"] === "all";
const lastsMs = all ? 700 : 400;

const needs = ["root", "nft", "strace", "gcc"] as const;

describeWith(`faults: each by itself on a kernel bridge, seed ${seed}`, needs, () => {
  let node: BridgeNode;
  const pick = random(seed);

  const begin = async (): Promise<void> => {
    const plugin = { addTimeoutMs: 10_000, delTimeoutMs: 5_000 };
    node = await BridgeNode.start({ clock: true, dataDirMb: 24, plugin });
  };
  beforeAll(begin);
  afterEach(async ({ task }) => {
    // What one test has left is no fault of the next.
    if (task.result?.state !== "fail") return;
    await node[Symbol.asyncDispose]();
    await begin();
  });
  afterAll(async () => node?.[Symbol.asyncDispose]());

  for (const fault of faults.filter(({ on }) => on.includes("bridge"))) {
    const underLoad = pick(2) === 0;
    for (const load of all ? [false, true] : [underLoad])
      test(`${fault.name}, ${load ? "while pods come and go" : "while nothing else happens"}`, async () => {
        const chance = random(seed);
        const workload = new Workload(node, { seed, lanes: 3, podsPerLane: 3 });
        await prepare(workload);
        if (load) workload.begin();
        await workload.endure(fault, chance, lastsMs);
        // And nothing else where nothing else happens: an ADD would mend the node by the way.
        if (!load) await workload.endLost();
        await workload.judge();
        await workload.end();
        expect(workload.violations, `${explain(fault, workload)}`).toEqual([]);
        expect(await node.disagreements([])).toEqual([]);
      });
  }

  /** Some pods stand, and nothing is under way. */
  async function prepare(workload: Workload): Promise<void> {
    workload.begin();
    await Bun.sleep(150);
    await workload.rest();
  }

  const explain = ({ name }: Fault, { events }: Workload): string =>
    `${name}, seed ${seed}\n${events.last().slice(-60).join("\n")}\n${node.agentLog().slice(-15).join("\n")}`;
});
