import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { Lease } from "../lease.ts";
import { SqliteStore } from "./sqlite-store.ts";
import { StoreSnapshot } from "./store-snapshot.ts";

let scratch: ReturnType<typeof scratchDir>;
let store: SqliteStore;
const path = (): string => `${scratch.path}/leases.db`;

beforeEach(async () => {
  scratch = scratchDir();
  store = await SqliteStore.open(path(), scratch.path);
});
afterEach(() => {
  store[Symbol.dispose]();
  scratch[Symbol.dispose]();
});

const owner = (sandboxId: string, network = "blue") => ({ network, sandboxId, ifname: "eth0" });
const lease = (address: string, more: Partial<Lease> = {}): Lease => ({
  owner: owner(address),
  rangeSet: 0,
  address: { ip: parseIp(address)!, prefix: address.includes(":") ? 64 : 24 },
  state: "allocated",
  bootId: "boot",
  generation: 1,
  allocatedAtMs: 1000,
  ...more,
});
const put = (...leases: readonly Lease[]): void =>
  store.transaction((): void => {
    for (const one of leases) store.put(one);
  });
const addresses = (leases: Iterable<Lease>): readonly string[] =>
  [...leases].map(({ owner: { network }, address }) => `${network} ${formatIp(address.ip)}`);
const snapshot = async (): Promise<StoreSnapshot> => (await StoreSnapshot.open(path()))!;

test("a database that is not there shows nothing", async () => {
  expect(await StoreSnapshot.open(`${scratch.path}/none.db`)).toBeUndefined();
});

test("shows one moment whatever is written meanwhile, and is closed as often as one likes", async () => {
  put(lease("10.0.0.2"));
  const seen = await snapshot();
  put(lease("10.0.0.3"));
  expect([addresses(seen.leases()), seen.countLeases()]).toEqual([["blue 10.0.0.2"], 1]);
  seen[Symbol.dispose]();
  seen[Symbol.dispose]();
});

test("shows leases, networks, runs and marks in order", async () => {
  const red = owner("r", "red");
  put(lease("10.0.1.9", { owner: red }), lease("fd00::2"), lease("10.0.0.3"), lease("10.0.0.2"));
  store.transaction((): void => {
    for (const [name, value] of ["last green x", "last blue x", "generation"].entries())
      store.setMark(value, String(name));
  });
  using seen = await snapshot();
  expect(addresses(seen.leases())).toEqual(["blue 10.0.0.2", "blue 10.0.0.3", "blue fd00::2", "red 10.0.1.9"]);
  expect(addresses(seen.leases("red"))).toEqual(["red 10.0.1.9"]);
  expect(seen.networks()).toEqual(["blue", "green", "red"]);
  expect([...seen.runs()].map(({ network, first, last }) => `${network} ${last - first + 1n}`)).toEqual([
    "blue 2",
    "blue 1",
    "red 1",
  ]);
  expect([seen.mark("generation"), seen.mark("none"), [...seen.marks().keys()]]).toEqual([
    "2",
    undefined,
    ["generation", "last blue x", "last green x"],
  ]);
  expect(seen.damage(9)).toEqual([]);
});

test("keeps no lease whose cooldown is over", async () => {
  const left = (address: string, releasedAtMs: number): Lease => lease(address, { state: "cooling", releasedAtMs });
  put(lease("10.0.0.2"), left("10.0.0.3", 1000), left("10.0.0.4", 2000));
  using seen = await snapshot();
  const kept = seen.kept(2000, undefined, { network: "blue", cooldownMs: 1000 });
  expect(addresses(kept)).toEqual(["blue 10.0.0.2", "blue 10.0.0.4"]);
});

test("names the pending detaches, oldest first", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    for (const [id, at] of [
      ["b", 1000],
      ["a", 2000],
    ] as const) {
      vi.setSystemTime(at);
      store.transaction((): void => store.setPendingDetach(owner(id), true));
    }
  } finally {
    vi.useRealTimers();
  }
  using seen = await snapshot();
  expect(seen.pendingDetaches()).toEqual([
    { owner: owner("b"), sinceMs: 1000 },
    { owner: owner("a"), sinceMs: 2000 },
  ]);
});

test("finds what there must not be twice, and so many of them at most", async () => {
  const twice = { owner: owner("twice"), generation: 7 };
  put(lease("10.0.0.2", twice), lease("10.0.0.3", twice));
  put(...["10.0.0.8", "10.0.0.9"].map((address) => lease(address, { owner: owner("also"), generation: 8 })));
  // One address of each family, of each range set, and one that is being released: none of them is too many.
  put(...["10.0.0.4", "fd00::4"].map((address, i) => lease(address, { owner: owner("both"), generation: 10 + i })));
  put(
    ...["10.0.0.5", "10.0.0.6"].map((address, i) =>
      lease(address, { owner: owner("sets"), rangeSet: i, generation: 20 + i }),
    ),
  );
  put(lease("10.0.0.7", { owner: owner("sets"), state: "releasing", releasedAtMs: 1, generation: 30 }));
  using seen = await snapshot();
  expect([seen.generationsTwice(9), seen.generationsTwice(1)]).toEqual([[7, 8], [7]]);
  expect([seen.holdingTwice(9), seen.holdingTwice(1).length]).toEqual([[owner("also"), owner("twice")], 1]);
});

test("a table that breaks its own rules is damage", async () => {
  put(lease("10.0.0.2"));
  using db = new DatabaseSync(path());
  db.exec("PRAGMA ignore_check_constraints = ON; UPDATE lease SET state = 'strange'");
  using seen = await snapshot();
  expect(seen.damage(9)).toEqual([expect.stringContaining("lease")]);
});
