import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { earlierExecutables } from "./earlier-release.ts";
import { UpgradeNode } from "./upgrade-node.ts";

/** What the release before meets of the one after it, when an upgrade is taken back. */
describeWith("what a newer release has left, and the earlier one", ["root", "earlier-release"], () => {
  let earlier: string;
  let node: UpgradeNode | undefined;

  beforeAll(async () => {
    compileExecutables();
    earlier = await earlierExecutables("linux");
  });
  afterEach(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  test("a key of agent.yaml that it does not know: it names it, with its line, and starts once it is gone", async () => {
    node = await UpgradeNode.withBridge();
    const { configFile } = node.home;
    const known = readFileSync(configFile, "utf8");
    writeFileSync(configFile, known.replace("{", '{\n  "laterKey": true,'));
    for (const release of [earlier, executables]) {
      const checked = await node.pipette(release, "agent", "--check", "--config", configFile);
      expect([checked.status, checked.stderr]).toEqual([expect.any(Number), expect.stringMatching(/laterKey/)]);
      expect(checked.status).not.toBe(0);
      expect(checked.stderr).toMatch(/:2[:\b]|line 2/);
    }
    writeFileSync(configFile, known);
    await node.runAgent(earlier);
  });

  test.each(["earlier", "of now"])(
    "a database of a later schema: the agent %s ends and names it, sets nothing aside, and pods stay; back again all is there",
    async (which) => {
      const release = which === "earlier" ? earlier : executables;
      node = await UpgradeNode.withBridge();
      await node.runAgent(release);
      const pod = await node.addPod(release, "a");
      await node.agent.end();
      setSchema(node.home.dataDir, (version) => version + 1);

      const agent = node.home.spawn();
      expect(await agent.ended()).not.toBe(0);
      expect(agent.stderr).toMatch(/leases\.db.*schema|schema.*leases\.db/);
      // Neither does its plugin end a pod of which it knows nothing: the runtime comes again.
      await expect(node.remove(release, pod)).rejects.toThrow(/schema/);
      const names = readdirSync(node.home.dataDir).filter((name) => !/-(wal|shm)$/.test(name));
      expect(names.sort()).toEqual(["agent.lock", "leases.db"]);
      expect(await node.namespace.run("ip -br link")).toContain(pod.result.interfaces[1]?.name);

      setSchema(node.home.dataDir, (version) => version - 1);
      await node.startAgain();
      await node.check(release, pod);
      await node.remove(release, pod);
      expect(await node.home.containers()).toEqual([]);
    },
  );
});

function setSchema(dataDir: string, change: (version: number) => number): void {
  const db = new DatabaseSync(join(dataDir, "leases.db"));
  const version = db.prepare("PRAGMA user_version").get()?.["user_version"];
  db.exec(`PRAGMA user_version = ${change(Number(version))}; PRAGMA wal_checkpoint(TRUNCATE)`);
  db.close();
}
