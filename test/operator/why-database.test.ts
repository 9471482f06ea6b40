import { readdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { execa } from "execa";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { startCommand } from "../support/cni-call.ts";
import { ownProgram } from "../support/own-program.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { WhyNode } from "./why-node.ts";

describeWith("why a pod has no network, with the database at fault", ["root", "nft"], () => {
  let node: WhyNode;

  beforeAll(async () => {
    node = await WhyNode.enter();
  });
  afterEach(() => node.clear());
  afterAll(() => node?.[Symbol.asyncDispose]());

  /** A disk of its own, which only this thread and what it starts see: `NetworkSandbox` has made that so. */
  const disk = scratchDir();
  afterAll(() => disk[Symbol.dispose]());
  const here = (script: string): Promise<unknown> => execa("sh", ["-c", script], { reject: false });

  /** What `pipette-ipam` answers an ADD of another network. */
  async function ipam(id: string, dataDir: string): Promise<string> {
    const conf = { type: "pipette-ipam", dataDir, subnet: "10.90.0.0/24" };
    const env = {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: id,
      CNI_NETNS: "/run/netns/x",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/",
    };
    const [program = "", ...args] = ownProgram;
    const command = ["bash", "-c", 'exec -a pipette-ipam "$@"', "bash", program, ...args];
    const stdin = JSON.stringify({ cniVersion: "1.0.0", name: "other", type: "bridge", ipam: conf });
    return (await startCommand(command, env, stdin).ended).stdout;
  }

  test("its disk is full since the agent has started", async () => {
    await using mounted = new AsyncDisposableStack();
    await node.sandbox.node(`mount -t tmpfs -o mode=700,size=1m none ${disk.path}`);
    mounted.defer(() => here(`umount -l ${disk.path}`).then(() => undefined));
    await node.start({ dataDir: join(disk.path, "data") });
    expect((await node.add("before")).answer.error).toBeUndefined();
    await here(`cat /dev/zero > ${disk.path}/rest`);
    const pod = await node.add("cart");
    expect(pod.answer.error).toBeDefined();
    const told = await node.why("cart");
    expect(told).toMatchObject({
      status: 1,
      code: "database-unwritable",
      todo: [expect.stringContaining("make room")],
    });
    expect(told.evidence[0]).toMatch(/the disk is full/);
    expect(told.evidence[0]).toContain(join(disk.path, "data"));
    // A pod that has its network keeps it, and nothing is said against it.
    expect(await node.why("before")).toMatchObject({ status: 0, result: "fine" });
    await here(`rm ${disk.path}/rest`);
    await eventually(async () => (await node.add("cart", { netns: pod.netns })).answer.error === undefined, "room");
    expect(await node.why("cart")).toMatchObject({ status: 0, result: "fine" });
  });

  test("its disk is read-only for the plugin of another network", async () => {
    await node.start();
    await using mounted = new AsyncDisposableStack();
    await node.sandbox.node(`mount -t tmpfs -o mode=700 none ${disk.path}`);
    mounted.defer(() => here(`umount -l ${disk.path}`).then(() => undefined));
    expect(await ipam("c1", disk.path)).toContain("10.90.0.");
    await node.sandbox.node(`mount -o remount,ro ${disk.path}`);
    const { msg, details } = JSON.parse(await ipam("c2", disk.path));
    const told = await node.why("cart", "--event", `plugin type="bridge" failed (add): ${msg}; ${details}`);
    expect(told).toMatchObject({ status: 1, code: "database-unwritable" });
    expect(told.evidence[0]).toMatch(/it is read-only/);
  });

  test("it was damaged, and nobody knows yet which addresses of another network are in use", async () => {
    const agent = await node.start();
    const { dataDir } = node.home;
    expect(await ipam("c1", dataDir)).toContain("10.90.0.");
    await agent.end();
    const database = join(dataDir, "leases.db");
    for (const name of readdirSync(dataDir).filter((one) => one.startsWith("leases.db-")))
      truncateSync(join(dataDir, name), 0);
    writeFileSync(database, "x".repeat(statSync(database).size));
    node.running = await node.home.start();
    const { msg, details } = JSON.parse(await ipam("c2", dataDir));
    expect(await node.why("cart", "--event", `plugin type="bridge" failed (add): ${msg}; ${details}`)).toMatchObject({
      ...{ status: 1, code: "leases-lost", todo: [expect.stringContaining("pipette ipam check")] },
      evidence: [expect.stringContaining("were lost when the database was damaged")],
    });
  });

  test("it belongs to another user", async () => {
    const agent = await node.start();
    await agent.end();
    await execa("chown", ["12345", join(node.home.dataDir, "leases.db")]);
    node.running = node.home.spawn();
    expect(await node.running.ended()).not.toBe(0);
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "database-open-to-others" });
  });

  test("it was damaged under the agent, which ended", async () => {
    const agent = await node.start();
    const pod = await node.add("cart");
    const database = join(node.home.dataDir, "leases.db");
    const db = new DatabaseSync(database);
    // Pages in the log hide those in the database.
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
    writeFileSync(database, "x".repeat(statSync(database).size));
    await eventually(async () => {
      await node.add("cart", { netns: pod.netns }).catch(() => undefined);
      return agent.stderr.includes("its content is damaged");
    }, "the agent to meet the damage");
    await agent.ended();
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "database-gone" });
  });
});
