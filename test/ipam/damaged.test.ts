import { readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, test } from "vitest";
import { Allocator, parseIpamConfig } from "../../ipam/mod.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { fillPage, overwrite, pageBytes } from "../support/noise.ts";
import { ipamCall, mustSucceed, runCall } from "./ipam-call.ts";

const pods = Array.from({ length: 200 }, (_, i) => `pod${i}`);

const confIn = (dataDir: string, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "pt-hurt",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.74.0.0/22" }]] },
  ...more,
});

/** Two hundred pods that stand; answers their addresses. `log`: everything since the first page is in the log. */
async function standing(dataDir: string, place: "database" | "log"): Promise<ReadonlyMap<string, string>> {
  const conf = new Fields(confIn(dataDir));
  const config = parseIpamConfig({ conf, network: "pt-hurt", version: "1.1.0", args: "" });
  const held = new Map<string, string>();
  {
    using allocator = await Allocator.open(dataDir);
    const few = place === "log" ? pods.slice(0, 4) : pods;
    for (const sandboxId of few) {
      const { leases } = allocator.allocate({ network: "pt-hurt", sandboxId, ifname: "eth0" }, config);
      held.set(sandboxId, leases.map(({ address }) => formatCidr(address)).join());
    }
  }
  if (place === "database") {
    const db = new DatabaseSync(`${dataDir}/leases.db`);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
  }
  return held;
}

/** By number from 0. Who came before the damage was met may have changed others. */
function differingPages(a: Buffer, b: Buffer): readonly number[] {
  const pages = Array.from({ length: Math.ceil(Math.max(a.length, b.length) / pageBytes) }, (_, i) => i);
  const of = (file: Buffer, i: number): Buffer => file.subarray(i * pageBytes, (i + 1) * pageBytes);
  return pages.filter((i) => !of(a, i).equals(of(b, i)));
}

/** The page at which a table or index begins, from 1. */
function rootOf(path: string, name: string): number {
  const db = new DatabaseSync(path, { readOnly: true });
  const row = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name);
  db.close();
  return Number(row?.["rootpage"]);
}

const overwriteTree = (path: string, name: string): void => fillPage(path, rootOf(path, name));

/** What damage does, and whether what is left says for certain which addresses are in use. */
const damages: readonly [string, "database" | "log", (path: string) => void, "complete" | "incomplete"][] = [
  ["its first 16 bytes overwritten", "database", (path) => overwrite(path, 0, 16), "complete"],
  ["its header overwritten", "database", (path) => overwrite(path, 0, 100), "complete"],
  ["its first page overwritten", "database", (path) => overwrite(path, 0, pageBytes), "incomplete"],
  ["all of it overwritten", "database", (path) => overwrite(path, 0, 1 << 20), "incomplete"],
  ["the leases' tree overwritten at its root", "database", (path) => overwriteTree(path, "lease"), "complete"],
  ["the index of owners overwritten", "database", (path) => overwriteTree(path, "lease_owner"), "complete"],
  ["the runs of taken addresses overwritten", "database", (path) => overwriteTree(path, "taken"), "complete"],
  ["the marks overwritten", "database", (path) => overwriteTree(path, "mark"), "complete"],
  ["cut to its half", "database", (path) => truncateSync(path, statSync(path).size / 2), "complete"],
  ["cut to one page", "database", (path) => truncateSync(path, pageBytes), "incomplete"],
  ["cut to 100 bytes", "database", (path) => truncateSync(path, 100), "incomplete"],
  ["cut to nothing, beside its log", "log", (path) => truncateSync(path, 0), "complete"],
  ["its log overwritten", "log", (path) => overwrite(`${path}-wal`, 0, 1 << 20), "incomplete"],
  ["the beginning of its log overwritten", "log", (path) => overwrite(`${path}-wal`, 0, 32), "incomplete"],
];

describe.each(damages)("a database with %s", (_name, place, damage, outcome) => {
  beforeAll(compileExecutables);

  test("peers 7: is set aside once by eight processes, and no standing address is given again", async () => {
    using data = scratch();
    const held = await standing(data.path, place);
    const path = `${data.path}/leases.db`;
    const sound = readFileSync(path);
    damage(path);
    const broken = readFileSync(path);
    const hurt = differingPages(sound, broken);
    const conf = confIn(data.path);
    const ids = ["new0", "new1", "new2", "new3", "pod3", "pod5", "pod7", "pod19"];
    const calls = [...ids.map((id) => ipamCall("ADD", id, conf)), ipamCall("DEL", "pod11", conf)];
    const ended = await Promise.all(calls.map((call) => runCall(call)));
    expect(ended.at(-1)).toMatchObject({ status: 0, stdout: "" });

    const beside = readdirSync(data.path).filter((name) => !/^leases\.db(-wal|-shm)?$/.test(name));
    const aside = beside.filter((name) => !/-(wal|shm)$/.test(name));
    expect(aside).toEqual([expect.stringMatching(/^leases\.db\.damaged-\d{8}T\d{6}\.\d{3}Z$/)]);
    for (const name of beside) expect(name).toContain(aside[0]);
    const kept = differingPages(readFileSync(`${data.path}/${aside[0]}`), broken);
    expect(hurt.filter((number) => kept.includes(number))).toEqual([]);
    expect(brokenInvariants(path)).toEqual([]);

    const others = new Set([...held].filter(([id]) => id !== "pod11").map(([, address]) => address));
    for (const [i, { status, stdout, stderr }] of ended.slice(0, -1).entries()) {
      const id = ids[i] ?? "";
      if (status !== 0) {
        expect([outcome, JSON.parse(stdout).code], stdout + stderr).toEqual(["incomplete", 101]);
        expect(JSON.parse(stdout).msg).toContain("were lost when the database was damaged");
        continue;
      }
      const address = JSON.parse(stdout).ips[0].address;
      if (held.has(id) && held.get(id) === address) continue;
      expect(others.has(address), `${address} of ${id}`).toBe(false);
    }
    const given = ended.filter(({ status }) => status === 0).length - 1;
    expect(given).toBeGreaterThanOrEqual(outcome === "complete" ? ids.length : 0);
    if (outcome === "complete") return;

    // The runtime's list names a pod without a lease: nothing is known for certain.
    const gc = (...names: readonly string[]) =>
      ipamCall(
        "GC",
        "",
        confIn(data.path, {
          "cni.dev/valid-attachments": names.map((containerID) => ({ containerID, ifname: "eth0" })),
        }),
      );
    await mustSucceed(gc("pod3"));
    await expect(mustSucceed(ipamCall("ADD", "later", conf))).rejects.toThrow("were lost");
    await mustSucceed(ipamCall("STATUS", "", conf));
    // Nothing runs any more.
    await mustSucceed(gc());
    expect((await mustSucceed(ipamCall("ADD", "later", conf))).ips).toHaveLength(1);
  });
});

test("where the owners are lost and the addresses are not, a GC frees none of them while somebody on its list has no lease", async () => {
  using data = scratch();
  const held = await standing(data.path, "database");
  const path = `${data.path}/leases.db`;
  for (const name of ["lease", "lease_owner"]) overwriteTree(path, name);
  const conf = confIn(data.path);
  const { ips } = await mustSucceed(ipamCall("ADD", "new", conf));
  expect([...held.values()]).not.toContain(ips?.[0]?.address);
  const listed = await leasesIn(data.path);
  expect(listed.filter(({ containerId }) => containerId.startsWith("unreadable-"))).toHaveLength(held.size);
  const gc = async (...names: readonly string[]): Promise<number> => {
    const list = names.map((containerID) => ({ containerID, ifname: "eth0" }));
    await mustSucceed(ipamCall("GC", "", confIn(data.path, { "cni.dev/valid-attachments": list })));
    return (await leasesIn(data.path)).filter(({ state }) => state === "allocated").length;
  };
  expect(await gc("new", "pod3")).toBe(held.size + 1);
  expect(await gc("new")).toBe(1);
});

test.each<[string, (path: string) => void]>([
  ["with its first page in its log, cut to 100 bytes,", (path) => truncateSync(path, 100)],
  ["whose index of the log is overwritten", (path) => overwrite(`${path}-shm`, 0, 32768)],
])("a database %s is mended by SQLite itself", async (_name, damage) => {
  using data = scratch();
  const held = await standing(data.path, "log");
  damage(`${data.path}/leases.db`);
  const conf = confIn(data.path);
  const { ips } = await mustSucceed(ipamCall("ADD", "pod3", conf));
  expect(ips?.[0]?.address).toBe(held.get("pod3"));
  expect(await leasesIn(data.path)).toHaveLength(4);
});

test("a database that another process has open is left alone, and the error names the process", {
  timeout: 30_000,
}, async () => {
  using data = scratch();
  await standing(data.path, "database");
  const path = `${data.path}/leases.db`;
  // Before it is opened: closing another descriptor of the file would cost this process its locks.
  overwriteTree(path, "lease_owner");
  const db = new DatabaseSync(path);
  db.exec("PRAGMA user_version");
  const { status, stdout } = await runCall(ipamCall("ADD", "new", confIn(data.path)));
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({
    code: 11,
    msg: `Cannot rebuild the lease database "${path}": process ${process.pid} kept it open for 5000 ms`,
  });
  expect(readdirSync(data.path).filter((name) => name.includes("damaged"))).toEqual([]);
  db.close();
});

test("what is no database of ours is not set aside", async () => {
  using data = scratch();
  const db = new DatabaseSync(`${data.path}/leases.db`);
  db.exec("CREATE TABLE t (x)");
  db.close();
  await expect(mustSucceed(ipamCall("ADD", "new", confIn(data.path)))).rejects.toThrow("another program's tables");
  writeFileSync(`${data.path}/other`, "");
  expect(readdirSync(data.path).sort()).toEqual(["leases.db", "other"]);
});
