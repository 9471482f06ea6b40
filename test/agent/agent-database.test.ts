import { readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { AgentHome, bridgeName, eventually, resultOf } from "../support/agent-process.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { fillPage } from "../support/noise.ts";
import { describeWith } from "../support/requires.ts";

/** Pages in the log hide those in the database. */
const moveLog = (db: DatabaseSync): void => db.exec("PRAGMA wal_checkpoint(TRUNCATE)");

function overwriteAll(path: string): void {
  const db = new DatabaseSync(path);
  moveLog(db);
  db.close();
  writeFileSync(path, "x".repeat(statSync(path).size));
}

describeWith("an agent whose database is damaged or gone", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let pods: string[] = [];
  let database: string;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dd-");
  });
  beforeEach(() => {
    home = new AgentHome();
    database = `${home.dataDir}/leases.db`;
  });
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    for (const pod of pods) await sandbox.removePod(pod);
    pods = [];
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());

  async function add(id: string) {
    const known = pods.find((path) => path.endsWith(id));
    const netns = known ?? (await sandbox.addPod(id));
    if (known === undefined) pods.push(netns);
    return resultOf(await home.cmd("cmdAdd", id, { netns }));
  }

  const ids = ["pod1", "pod2", "pod3"];
  const setAside = (): readonly string[] => readdirSync(home.dataDir).filter((name) => /damaged-[^-]*$/.test(name));

  /** Whatever was lost: the pods have what they had, and a new one gets an address that none of them has. */
  async function allIsKnown(before: readonly Awaited<ReturnType<typeof add>>[]): Promise<void> {
    for (const [i, id] of ids.entries()) expect(await add(id)).toEqual(before[i]);
    const taken = before.flatMap(({ ips }) => ips.map(({ address }) => address));
    for (const { address } of (await add("new")).ips) expect(taken).not.toContain(address);
    expect(await home.containers()).toEqual([...ids, "new"].sort());
    expect(brokenInvariants(database)).toEqual([]);
    expect((await home.status()).problems).toEqual([]);
  }

  const damages: readonly [string, (path: string) => void][] = [
    ["all of it overwritten", overwriteAll],
    ["its log overwritten", (path) => writeFileSync(`${path}-wal`, "x".repeat(statSync(`${path}-wal`).size))],
    ["cut to nothing", (path) => truncateSync(path, 0)],
  ];

  test.each(damages)(
    "%s while no agent runs: the next one sets it aside and reads the pods' addresses",
    async (_name, damage) => {
      const first = await home.start();
      const before = [await add("pod1"), await add("pod2"), await add("pod3")];
      await first.end("SIGKILL");
      damage(database);
      const second = await home.start();
      expect(second.lines.map((line) => line["message"]).join()).toContain("is set aside as");
      expect(setAside()).toHaveLength(1);
      await allIsKnown(before);
    },
  );

  test.each(["min", "max"])(
    "a pod of whose leases one is nameless keeps both of its addresses: the %s of them",
    async (which) => {
      const first = await home.start();
      const before = [await add("pod1"), await add("pod2"), await add("pod3")];
      await first.end();
      const db = new DatabaseSync(database);
      const one = `SELECT ${which}(address) FROM lease WHERE sandbox_id = 'pod2'`;
      db.exec(`UPDATE lease SET sandbox_id = 'unreadable-x', ifname = '' WHERE address = (${one})`);
      db.close();
      await home.start();
      for (const { address } of before[1]?.ips ?? []) {
        const [ip = ""] = address.split("/");
        expect(await sandbox.ping(undefined, ip)).toBe(true);
      }
      await allIsKnown(before);
    },
  );

  test("the first run after a reboot says what it plans, and gives nothing back before the grace is over", async () => {
    const first = await home.start();
    await add("pod1");
    await first.end();
    await sandbox.node(`ip link del ${bridgeName}`);
    const db = new DatabaseSync(database);
    db.exec("UPDATE lease SET boot_id = 'the boot before'");
    db.close();
    for (const link of JSON.parse(await sandbox.node("ip -j link show type veth")))
      await sandbox.node(`ip link del ${link.ifname}`);
    const second = await home.start();
    const messages = second.lines.map((line) => String(line["message"]));
    const at = (text: string): number => messages.findIndex((message) => message.includes(text));
    expect(at("the node has booted since")).toBeGreaterThan(at("a lease of an earlier boot has no interface"));
    expect(at("reconciled")).toBeGreaterThan(at("the node has booted since"));
    await Bun.sleep(500);
    using store = await home.store();
    expect(store.list().map(({ state }) => state)).toEqual(["allocated", "allocated"]);
  });

  test("damage that no use has met is found at the start, before the runtime's file is written", async () => {
    const first = await home.start();
    const before = [await add("pod1"), await add("pod2"), await add("pod3")];
    await first.end();
    rmSync(home.conflist);
    const db = new DatabaseSync(database);
    moveLog(db);
    const row = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'lease_left'").get();
    db.close();
    fillPage(database, Number(row?.["rootpage"]));
    const second = await home.start();
    const messages = second.lines.map((line) => String(line["message"]));
    const at = (text: string): number => messages.findIndex((message) => message.includes(text));
    expect(at("is set aside as")).toBeGreaterThanOrEqual(0);
    expect(at("wrote the network configuration")).toBeGreaterThan(at("is set aside as"));
    await allIsKnown(before);
  });

  test("damage while it runs, and a file that is taken away: it says so and ends, and the next one goes on", async () => {
    const first = await home.start();
    const before = [await add("pod1"), await add("pod2"), await add("pod3")];
    rmSync(database);
    expect(await first.ended()).toBe(1);
    expect(first.stderr).toContain("it is gone, wanted the one that is open here");
    const second = await home.start();
    for (const [i, id] of ids.entries()) expect(await add(id)).toEqual(before[i]);
    overwriteAll(database);
    await eventually(async () => {
      await home.cmd("cmdAdd", "pod1", { netns: pods[0] ?? "" }).catch(() => undefined);
      return second.stderr.includes("its content is damaged");
    }, "the agent to meet the damage");
    expect(await second.ended()).toBe(1);
    await home.start();
    await allIsKnown(before);
  });
});
