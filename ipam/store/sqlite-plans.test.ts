import { constants, DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { parseIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import { SqliteStore } from "./sqlite-store.ts";

/** Runs `work` and answers every statement that was prepared meanwhile. */
function statementsOf(work: () => void): readonly string[] {
  const statements: string[] = [];
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...rest) {
    statements.push(sql);
    return prepare.call(this, sql, ...rest);
  };
  try {
    work();
  } finally {
    DatabaseSync.prototype.prepare = prepare;
  }
  return statements;
}

const conf = new Fields({
  ipam: { ranges: [[{ subnet: "10.0.0.0/30" }], [{ subnet: "fd00::/64" }]], cooldownMs: 9999 },
});
const config = parseIpamConfig({ conf, network: "net", version: "1.0.0", args: "" });
const owner = (sandboxId: string) => ({ network: "net", sandboxId, ifname: "eth0" });

/** Every statement of ADD, DEL and CHECK, in a pool with one address for each family. */
function useAll(allocator: Allocator): void {
  allocator.allocate(owner("a"), config);
  expect(() => allocator.allocate(owner("b"), config)).toThrow("0 of 1 addresses free");
  allocator.find(owner("a"));
  allocator.holds(allocator.allocate(owner("a"), config).leases);
  allocator.undo(allocator.allocate(owner("a"), config), "cooling");
  const [lease] = allocator.release(owner("a"), "releasing");
  allocator.finishRelease(lease!);
  // Takes the address that cools, as nothing else is free.
  const sticky = { ...config, sticky: true };
  const pod = { namespace: "default", name: "web", uid: "" };
  allocator.allocate(owner("c"), sticky, pod);
  allocator.release(owner("c"), "cooling");
  allocator.allocate(owner("d"), sticky, pod);
}

test("no statement of ADD, DEL, CHECK or an exhausted pool looks at more leases than it needs", async () => {
  using scratch = scratchDir();
  using allocator = await Allocator.open(scratch.path);
  const statements = statementsOf(() => useAll(allocator));
  const db = new DatabaseSync(`${scratch.path}/leases.db`);
  const plans = statements.map((sql) => {
    const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as unknown as readonly { detail: string }[];
    return { sql, steps: steps.map((step) => step.detail).filter((detail) => !detail.startsWith("USE TEMP")) };
  });
  db.close();
  expect(plans.length).toBeGreaterThan(8);
  for (const { sql, steps } of plans) {
    for (const step of steps) expect(step, sql).not.toMatch(/^SCAN/);
    // By address only one lease is looked for, or the lowest of a window.
    if (!/^SELECT .*FROM lease/.test(sql)) continue;
    const wanted = sql.includes("released_at_ms")
      ? /INDEX lease_left \(network=\?/
      : sql.includes("sandbox_id")
        ? /INDEX lease_owner \(network=\? AND sandbox_id=\? AND ifname=\?/
        : /PRIMARY KEY \(network=\? AND address/;
    expect(steps.join(), sql).toMatch(wanted);
  }
});

test.each([
  ["few addresses looks at those alone", "10.3.255.255", /PRIMARY KEY \(network=\? AND address>\?/],
  ["many looks at what was released", "10.4.0.0", /INDEX lease_left \(network=\?/],
])("the search for what cools among %s", async (_name, to, wanted) => {
  using scratch = scratchDir();
  (await Allocator.open(scratch.path))[Symbol.dispose]();
  const path = `${scratch.path}/leases.db`;
  using store = await SqliteStore.open(path, scratch.path);
  const within = { from: parseIp("10.0.0.0")!, to: parseIp(to)! };
  const [sql = ""] = statementsOf(() => {
    store.select({ by: "cooling", network: "net", releasedByMs: 9, within, limit: 3 });
  });
  const db = new DatabaseSync(path);
  const steps = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as unknown as readonly { detail: string }[];
  db.close();
  expect(steps[0]?.detail).toMatch(wanted);
});

test("no statement is compiled again when it is used again with other values", async () => {
  using scratch = scratchDir();
  let compiled = 0;
  const count = (action: number): number => {
    // BEGIN and COMMIT are given as texts each time.
    if (action !== constants.SQLITE_TRANSACTION) compiled++;
    return constants.SQLITE_OK;
  };
  const heard = new WeakSet<DatabaseSync>();
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...rest) {
    // SQLite asks for each table and column of what it compiles. To be told whom to ask expires what it has compiled.
    if (!heard.has(this)) this.setAuthorizer(count);
    heard.add(this);
    return prepare.call(this, sql, ...rest);
  };
  try {
    using allocator = await Allocator.open(scratch.path);
    const round = (): void => {
      useAll(allocator);
      allocator.endAttachment(owner("d"), allocator.uncooled(owner("d")));
      allocator.pendingDetaches();
      allocator.usage("net", config);
    };
    round();
    const before = compiled;
    expect(before).toBeGreaterThan(100);
    round();
    expect(compiled).toBe(before);
  } finally {
    DatabaseSync.prototype.prepare = prepare;
  }
});
