import { expect, test } from "vitest";
import { faults } from "../stress/faults/index.ts";
import { describeWith } from "../support/requires.ts";
import { soakNodes } from "./soak-nodes.ts";
import { reportText } from "./soak-report.ts";
import { runSoak } from "./soak-run.ts";

const minutes = Number(process.env["PIPETTE_SOAK_MINUTES"] ?? 2);
const seed = Number(process.env["PIPETTE_SEED"] ?? Date.now() % 1_000_000);

describeWith("a node with a kernel bridge", ["root", "nft"], () => {
  test(`loses nothing in ${minutes} minutes of churn and faults (seed ${seed})`, {
    timeout: minutes * 60_000 + 120_000,
    // With another order of events it would pass by chance.
    retry: 0,
  }, async () => {
    await using node = await soakNodes["bridge"]?.();
    if (node === undefined) throw new Error("Cannot soak: there is no such node");
    const wanted = faults.filter(({ on }) => on.includes(node.kind));
    const report = await runSoak({ node, faults: wanted, seconds: minutes * 60, seed, quietMs: 4_000, faultMs: 4_000 });
    expect(report.wrong, reportText(report)).toEqual([]);
    expect(report.calls).toBeGreaterThan(minutes * 100);
    expect(Object.keys(report.faults).length).toBeGreaterThan(1);
  });
});
