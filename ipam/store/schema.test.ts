import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/ip.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { applicationId, migrations } from "./schema.ts";
import { SqliteStore } from "./sqlite-store.ts";

/** A database as the executable of that version left it, with a lease in each state. */
function madeByVersion(path: string, version: number): void {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL");
  for (const step of migrations.slice(0, version)) db.exec(step);
  const columns =
    "network, address, prefix, range_set, sandbox_id, ifname, state, boot_id, generation, allocated_at_ms, released_at_ms";
  const add = db.prepare(`INSERT INTO lease (${columns}) VALUES ('net', ?, 24, 0, ?, 'eth0', ?, 'boot', ?, 1000, ?)`);
  for (const [i, state] of ["allocated", "releasing", "cooling"].entries())
    add.run(addressKey(2 + i), `s${i}`, state, i + 1, state === "allocated" ? null : 2000);
  db.prepare("INSERT INTO taken VALUES ('net', ?, ?)").run(addressKey(2), addressKey(4));
  db.exec("INSERT INTO mark VALUES ('generation', '3')");
  db.exec("INSERT INTO departure VALUES ('net', 'd1', 'eth0', 1000)");
  db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
  db.close();
}

/** `::ffff:10.0.0.<last>` */
const addressKey = (last: number): Uint8Array => new Uint8Array([...Array(10).fill(0), 255, 255, 10, 0, 0, last]);

describe.each(migrations.map((_, i) => i + 1))("a database of schema %i", (version) => {
  test("is taken on with all that is in it", async () => {
    using scratch = scratchDir();
    const path = `${scratch.path}/leases.db`;
    madeByVersion(path, version);
    using store = await SqliteStore.open(path, scratch.path);
    const found = store.select({ by: "network" });
    expect(found.map((lease) => `${formatIp(lease.address.ip)} ${lease.owner.sandboxId} ${lease.state}`)).toEqual([
      "10.0.0.2 s0 allocated",
      "10.0.0.3 s1 releasing",
      "10.0.0.4 s2 cooling",
    ]);
    expect(found.every((lease) => lease.sticky === undefined)).toBe(true);
    expect(formatIp(store.nextFree("net", parseIp("10.0.0.2")!))).toBe("10.0.0.5");
    expect([store.mark("generation"), store.departures().length]).toEqual(["3", 1]);
    const changed = { ...found[0]!, sticky: true as const };
    const place = { network: "net", ifname: "eth0", namespace: "default", name: "web" };
    store.transaction((): void => {
      store.put(changed);
      store.remember(place, 0, changed.address.ip, 9);
    });
    expect(store.select({ by: "owner", owner: changed.owner })).toEqual([changed]);
    expect(store.remembered(place)).toEqual([changed.address.ip]);
  });

  test("is brought to the schema of today", async () => {
    using scratch = scratchDir();
    const path = `${scratch.path}/leases.db`;
    madeByVersion(path, version);
    (await SqliteStore.open(path, scratch.path))[Symbol.dispose]();
    using fresh = scratchDir();
    (await SqliteStore.open(`${fresh.path}/leases.db`, fresh.path))[Symbol.dispose]();
    expect(schemaOf(path)).toEqual(schemaOf(`${fresh.path}/leases.db`));
  });
});

function schemaOf(path: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  const tables = db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").all();
  const version = db.prepare("PRAGMA user_version").get();
  db.close();
  return { tables, version };
}
