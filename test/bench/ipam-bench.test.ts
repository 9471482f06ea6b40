import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, debianPlugins, executables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { ipamJsonLines, ipamTables } from "./ipam/ipam-report.ts";
import { type IpamFigures, measureIpam } from "./ipam/measure-ipam.ts";
import { Launcher } from "./launch/launcher.ts";

describeWith("the allocator's benchmark in miniature", ["cni-plugins", "musl"], () => {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-test-"));
  let figures: IpamFigures = { pools: [], writers: [] };

  beforeAll(async () => {
    compileExecutables();
    figures = await measureIpam({
      dist: executables,
      launcher: await Launcher.compile(scratch),
      peers: debianPlugins,
      scratch,
      rounds: 1,
      calls: 40,
      writers: [1, 4],
      maxLeases: 300,
      maxLeasesWithPeer: 250,
      progress: () => undefined,
    });
  });

  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  test("every pool gets its figures, and those of host-local where it takes part", () => {
    expect(figures.pools.map(({ pool }) => pool)).toEqual([
      "10.128.0.0/12, 0",
      "10.128.0.0/12, 250 packed",
      "10.128.0.0/12, 300 packed",
      "10.128.0.0/12, 300 scattered",
      "10.128.0.0/12, 300 scattered",
      "fd00:128::/64, 300 scattered",
    ]);
    for (const { cold, hostLocal, warm, leases, bytesPerLease } of figures.pools) {
      const times = [cold.add, cold.del, warm.add, warm.check, warm.del];
      if (hostLocal !== undefined) times.push(hostLocal.add, hostLocal.del);
      for (const { median } of times) expect(median).toBeGreaterThan(0);
      expect(warm.add.n).toBe(40);
      if (leases > 0) expect(bytesPerLease).toBeGreaterThan(64);
    }
    expect(figures.pools.filter(({ hostLocal }) => hostLocal !== undefined)).toHaveLength(2);
  });

  test("writers share the work, and no address is given twice", () => {
    expect(figures.writers.map(({ writers, add, doubled }) => [writers, add.n, doubled])).toEqual([
      [1, 40, 0],
      [4, 40, 0],
    ]);
  });

  test("both reports hold every line", () => {
    for (const { pool } of figures.pools) expect(ipamTables(figures)).toContain(pool);
    const lines = ipamJsonLines(figures, { pipette: "x" })
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ measure }) => measure)).toEqual([...Array(6).fill("pool"), "writers", "writers"]);
    expect(lines[0]).toMatchObject({ machine: { cores: expect.any(Number) }, versions: { pipette: "x" } });
  });
});
