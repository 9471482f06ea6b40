import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { faults } from "../../faults/kinds/index.ts";
import { WindowsStressNode } from "../../faults/node/windows-node.ts";
import type { Fault } from "../../faults/workload/fault.ts";
import { Workload } from "../../faults/workload/workload.ts";
import { random } from "../../support/random.ts";
import { seed } from "../../support/seed.ts";
import { describeWine } from "../wine/describe-wine.ts";

const plugin = { addTimeoutMs: 8_000, delTimeoutMs: 4_000 };
const agent = { hnsTimeoutMs: 4_000 };

/** Each takes some seconds, so a run has other ones each time; the soak has all of them. */
const usually = 3;
const pick = random(seed);

/** Nothing but the agent itself gives these pods their endpoints back, where no call comes. */
const always = (name: string, load: boolean): boolean => !load && name.includes("lost every endpoint");

function chosen(load: boolean): readonly Fault[] {
  const own = faults.filter(({ on }) => on.includes("hns"));
  if (process.env["PIPETTE_FAULTS"] === "all") return own;
  const first = own.filter(({ name }) => always(name, load));
  const rest = own.filter((fault) => !first.includes(fault));
  while (first.length < usually) first.push(...rest.splice(pick(rest.length), 1));
  return first;
}

describeWine(`a Windows node (seed ${seed})`, () => {
  let node: WindowsStressNode;
  beforeAll(async () => {
    node = await WindowsStressNode.start({ runDirectory: inject("wineDirectory"), plugin, agent });
  });
  afterAll(() => node[Symbol.asyncDispose]());

  async function loses(fault: Fault, load: boolean): Promise<void> {
    const workload = new Workload(node, { seed, lanes: 2, podsPerLane: 3 });
    workload.begin();
    await Bun.sleep(1_500);
    if (!load) await workload.rest();
    await workload.endure(fault, random(seed), 1_000);
    // Pods that it took for good are made anew by those who make them come and go, or by a runtime that finds out.
    if (!load) await workload.endLost();
    await workload.judge();
    await workload.end();
    expect(workload.violations, [...workload.events.last(), ...node.agentLog()].join("\n")).toEqual([]);
  }

  test.each(chosen(true))("loses nothing while its pods come and go: $name", (fault) => loses(fault, true), 120_000);
  test.each(chosen(false))("loses nothing while nobody asks: $name", (fault) => loses(fault, false), 120_000);
});
