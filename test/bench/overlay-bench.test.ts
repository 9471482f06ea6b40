import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { Launcher } from "./launch/launcher.ts";
import { measureOverlay } from "./overlay/measure-overlay.ts";
import { nodeParts } from "./overlay/node-flows.ts";
import { table } from "./report.ts";
import type { Row } from "./row.ts";

describeWith("the overlay's benchmark in miniature", ["root", "cni-plugins", "musl", "openvswitch"], () => {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-test-"));
  let node: NetworkSandbox;
  let rows: readonly Row[] = [];

  beforeAll(async () => {
    compileExecutables();
    node = await NetworkSandbox.enter("pto-");
    rows = await measureOverlay({
      dist: executables,
      launcher: await Launcher.compile(scratch),
      peers: "/usr/lib/cni",
      scratch,
      rounds: 1,
      flows: 50,
      node: { pods: 3, peers: 5 },
      services: { count: 4, endpoints: 2 },
      burst: 4,
      progress: () => undefined,
    });
  });

  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true, force: true });
  });

  test("every budget of the overlay gets a figure", () => {
    const flows = [...nodeParts({ pods: 3, peers: 5 }).values()].flatMap((part) => part.flows).length;
    const pods = ["pod on Open vSwitch, ADD + DEL", "  ADD alone", "  DEL alone"];
    expect(rows.map((row) => row.measure)).toEqual([
      ...pods,
      ...pods,
      "an ADD among 4 at once, in the agent",
      "50 flows in a bundle",
      `replay of ${flows} flows: 3 pods, 5 peers`,
      "4 services with 2 endpoints each, into an empty switch",
      "4 services with 2 endpoints each, one endpoint changes",
      "agent's resident memory, 4 services with 2 endpoints each",
    ]);
    for (const row of rows) {
      expect(row.value, row.measure).toSatisfy((value: number) => Number.isFinite(value) && value > 0);
      if (row.measure === "  DEL alone") expect(row.budget, row.measure).toBeUndefined();
      else expect(row.budget, row.measure).toBeGreaterThan(0);
      expect(table(rows)).toContain(row.measure);
    }
  });
});
