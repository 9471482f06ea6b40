import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { scratchDir } from "../../support/scratch-dir.ts";
import { seed } from "../../support/seed.ts";
import { faults } from "../kinds/index.ts";
import { soakNodes } from "./soak-nodes.ts";
import { reportText } from "./soak-report.ts";
import { runSoak } from "./soak-run.ts";

const minutes = Number(process.env["PIPETTE_SOAK_MINUTES"] ?? 1);

describeWith("npm run soak", ["root", "nft"], () => {
  test("ends early with its report when it is asked to", async () => {
    using scratch = scratchDir();
    const json = join(scratch.path, "report.json");
    const program = join(import.meta.dirname, "soak.ts");
    const command = [process.execPath, program, "--minutes", "30", "--seed", "7", "--json", json];
    await using soaking = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    // It says where it stands once there is something to say.
    for await (const chunk of soaking.stderr) if (new TextDecoder().decode(chunk).includes(" of 30:00: ")) break;
    soaking.kill("SIGINT");
    expect(await soaking.stdout.text()).toMatch(/^\nbridge, seed 7: \d+ calls in .*\nNothing was wrong\.\n$/s);
    expect(await soaking.exited).toBe(0);
    expect(JSON.parse(readFileSync(json, "utf8"))).toMatchObject({ dataPath: "bridge", seed: 7, wrong: [] });
  });
});

describeWith("a node with a kernel bridge", ["root", "nft"], () => {
  const timeout = minutes * 60_000 + 120_000;
  test(`loses nothing in ${minutes} minutes of churn and faults (seed ${seed})`, { timeout }, async () => {
    await using node = await soakNodes["bridge"]?.();
    if (node === undefined) throw new Error("Cannot soak: there is no such node");
    const wanted = faults.filter(({ on }) => on.includes(node.kind));
    const report = await runSoak({ node, faults: wanted, seconds: minutes * 60, seed, quietMs: 4_000, faultMs: 4_000 });
    expect(report.wrong, reportText(report)).toEqual([]);
    expect(report.calls).toBeGreaterThan(minutes * 100);
    expect(Object.keys(report.faults).length).toBeGreaterThan(1);
  });
});
