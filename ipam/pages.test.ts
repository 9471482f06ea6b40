import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { ipOf } from "../shared/net/ip.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { Allocator } from "./allocator.ts";
import type { Lease } from "./lease.ts";
import { leasePages, networksIn } from "./pages.ts";
import { SqliteStore } from "./store/sqlite-store.ts";

const lease = (network: string, i: number): Lease => ({
  owner: { network, sandboxId: `s${i}`, ifname: "eth0" },
  rangeSet: 0,
  address: { ip: ipOf(i % 2 === 0 ? 4 : 6, BigInt(i) + (i % 2 === 0 ? 0n : 1n << 100n)), prefix: 24 },
  state: "allocated",
  bootId: "",
  generation: i,
  allocatedAtMs: 1,
});

test("leases come a page at a time, each address once, also where others come and go meanwhile", async () => {
  using scratch = scratchDir();
  using store = await SqliteStore.open(`${scratch.path}/leases.db`, scratch.path);
  const put = (...leases: readonly Lease[]): void =>
    store.transaction((): void => {
      for (const one of leases) store.put(one);
    });
  const some = (network: string, count: number) => Array.from({ length: count }, (_, i) => lease(network, i));
  put(...some("a", 3), ...some("b", 1_200), ...some("c", 5));

  expect([...leasePages(store, "b")].flat()).toEqual(store.select({ by: "network", network: "b" }));
  expect([...leasePages(store, "none")]).toEqual([]);
  expect([...leasePages(store)].flat()).toEqual(store.select({ by: "network" }));
  expect(networksIn(store)).toEqual(["a", "b", "c"]);

  const pages = leasePages(store);
  const seen = [...(pages.next().value ?? [])];
  expect(seen.length).toBeLessThan(1_000);
  // The one that the next page would have begun behind, and one that it has yet to come to.
  store.transaction((): void => store.remove(seen.at(-1)!));
  put(lease("c", 100));
  seen.push(...[...pages].flat());
  expect(new Set(seen.map(({ owner, address }) => `${owner.network} ${address.ip.value}`)).size).toBe(1_209);
  expect(seen).toHaveLength(1_209);
});

test("a page is found by its key", async () => {
  using scratch = scratchDir();
  using allocator = await Allocator.open(scratch.path);
  const statements: string[] = [];
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...rest) {
    statements.push(sql);
    return prepare.call(this, sql, ...rest);
  };
  try {
    expect([...allocator.pages()]).toEqual([]);
  } finally {
    DatabaseSync.prototype.prepare = prepare;
  }
  using db = new DatabaseSync(`${scratch.path}/leases.db`);
  const plan = db.prepare(`EXPLAIN QUERY PLAN ${statements[0]}`).all() as unknown as readonly { detail: string }[];
  expect(plan.map(({ detail }) => detail)).toEqual([
    expect.stringMatching(/^SEARCH lease USING PRIMARY KEY \(\(?network/),
  ]);
});
