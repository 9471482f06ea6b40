import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, test } from "vitest";
import { Allocator } from "../../ipam/mod.ts";
import { migrations } from "../../ipam/store/schema.ts";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { databaseOf, schemas } from "./earlier-schemas.ts";
import { ipamCall, mustSucceed } from "./ipam-call.ts";

const conf = (dataDir: string) => ({
  cniVersion: "1.1.0",
  name: "pods",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.244.1.0/24" }], [{ subnet: "fd00:1::/64" }]] },
});

const versionOf = (dataDir: string): unknown => {
  const db = new DatabaseSync(`${dataDir}/leases.db`);
  try {
    return db.prepare("PRAGMA user_version").get();
  } finally {
    db.close();
  }
};

test("there is a database of every earlier schema", () => {
  expect(schemas).toEqual(migrations.slice(1).map((_, i) => i + 1));
});

describe.each(schemas)("a database of schema %i", (schema) => {
  beforeAll(compileExecutables);

  /** Without the one that cools: its time is long over. */
  const kept = [
    "10.244.1.2/24 sandbox-a allocated",
    "10.244.1.3/24 sandbox-b releasing",
    "10.244.1.77/24 sandbox-d allocated",
    "fd00:1::2/64 sandbox-a allocated",
    "fd00:1::3/64 sandbox-b releasing",
    "fd00:1::5/64 sandbox-d allocated",
  ];

  test("keeps its leases, their order and its pending detaches", async () => {
    using data = scratch();
    databaseOf(schema, data.path);
    using allocator = await Allocator.openExisting(data.path);
    expect(allocator?.find({ network: "pods", sandboxId: "sandbox-a", ifname: "eth0" })[0]).toMatchObject({
      pod: { namespace: "default", name: "web", uid: "uid-a" },
      bootId: "11111111-2222-3333-4444-555555555555",
      generation: 1,
    });
    expect(allocator?.pendingDetaches()).toEqual([{ network: "delegated", sandboxId: "sandbox-f", ifname: "eth0" }]);
    expect(versionOf(data.path)).toEqual({ user_version: migrations.length });
    // The turn goes on from the address that was given last.
    const { ips } = await mustSucceed(ipamCall("ADD", "new", conf(data.path)));
    expect(ips?.map((ip) => ip.address)).toEqual(["10.244.1.78/24", "fd00:1::6/64"]);
  });

  test("is brought forward once by 16 processes that come at the same time", async () => {
    using data = scratch();
    databaseOf(schema, data.path);
    const ids = ["sandbox-a", "sandbox-d", ...Array.from({ length: 14 }, (_, i) => `new${i}`)];
    const given = await Promise.all(ids.map((id) => mustSucceed(ipamCall("ADD", id, conf(data.path)))));
    expect(given.slice(0, 2).map(({ ips }) => ips?.[0]?.address)).toEqual(["10.244.1.2/24", "10.244.1.77/24"]);
    const listed = (await leasesIn(data.path)).map(
      ({ address, containerId, state }) => `${address} ${containerId} ${state}`,
    );
    expect(listed).toEqual(expect.arrayContaining(kept));
    expect(new Set(given.flatMap(({ ips }) => ips?.map((ip) => ip.address))).size).toBe(2 * ids.length);
    expect(brokenInvariants(`${data.path}/leases.db`)).toEqual([]);
  });

  test("that is newer than the executable is refused with both versions, and stays as it is", async () => {
    using data = scratch();
    databaseOf(schema, data.path);
    const db = new DatabaseSync(`${data.path}/leases.db`);
    db.exec(`PRAGMA user_version = ${migrations.length + 1}`);
    db.close();
    const before = readFileSync(`${data.path}/leases.db`);
    for (const verb of ["ADD", "DEL", "GC"]) {
      const more = { "cni.dev/valid-attachments": [] };
      await expect(mustSucceed(ipamCall(verb, "new", { ...conf(data.path), ...more }))).rejects.toThrow(
        `its schema version is ${migrations.length + 1}, wanted ${migrations.length} or lower`,
      );
    }
    expect(readFileSync(`${data.path}/leases.db`)).toEqual(before);
    expect(readFileSync(`${data.path}/leases.db-wal`)).toHaveLength(0);
  });
});
