import { readFileSync } from "node:fs";
import { StatementSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Allocator, type Lease, parseIpamConfig } from "../../ipam/mod.ts";
import { formatIp, parseCidr } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type Filling, fillStore, standingId } from "../support/filled-store.ts";
import { scratchDir } from "../support/scratch-dir.ts";

// What a call costs is counted in pages of the database, in a process that has read none of them yet.

const network = "net";
const pageBytes = 2048;
/** A tree of a thousand times as many leases is two levels higher, and a call looks into five or six trees. */
const pagesOfHigherTrees = 12;
const few = 20;

/** The kernel counts for the one thread, in which SQLite reads. */
const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync("/proc/thread-self/io", "utf8"))?.[1]);

type Verb = (allocator: Allocator, standing: string) => unknown;

async function pagesReadBy(verb: Verb, dataDir: string, leases: number): Promise<number> {
  using allocator = await Allocator.open(dataDir);
  const look = bytesRead();
  const before = bytesRead();
  verb(allocator, standingId(leases >> 1));
  return Math.round((bytesRead() - before - (before - look)) / pageBytes);
}

const owner = (sandboxId: string) => ({ network, sandboxId, ifname: "eth0" });

const pools: readonly [string, string, Filling["shape"], number, number | undefined][] = [
  ["side by side", "10.0.0.0/12", "packed", 20_000, undefined],
  ["in half of the pool, at random", "10.0.0.0/17", "scattered", 16_384, undefined],
  ["in all of the pool but one address, at random", "10.0.0.0/18", "scattered", 16_380, undefined],
  ["over an IPv6 /64", "fd00::/64", "scattered", 20_000, undefined],
  ["all cooling, their time not over", "10.0.0.0/18", "packed", 16_381, Date.now()],
];

describe.each(pools)("with many leases %s", (_name, subnet, shape, leases, coolingSinceMs) => {
  const ipam = { ranges: [[{ subnet }]], cooldownMs: 24 * 3600_000 };
  const config = parseIpamConfig({ conf: new Fields({ ipam }), network, version: "1.0.0", args: "" });
  const filling = {
    network,
    subnet: parseCidr(subnet)!,
    shape,
    ...(coolingSinceMs === undefined ? {} : { coolingSinceMs }),
  };
  const verbs: Readonly<Record<string, Verb>> = {
    ADD: (allocator) => expect(allocator.allocate(owner("new"), config).created).toBe(true),
    "ADD of one that is there": (allocator, standing) => allocator.allocate(owner(standing), config),
    DEL: (allocator, standing) => allocator.release(owner(standing), "cooling"),
    "DEL of one that is not there": (allocator) => allocator.release(owner("nobody"), "cooling"),
    "CHECK and GET": (allocator, standing) => allocator.find(owner(standing)),
    "whether it is exhausted": (allocator) => expect(allocator.exhausted(network, config)).toEqual([]),
  };

  const scratch = scratchDir();
  const [withFew, withMany] = [`${scratch.path}/few`, `${scratch.path}/many`];
  beforeAll(async () => {
    await fillStore(withFew, { ...filling, leases: few });
    await fillStore(withMany, { ...filling, leases });
  });
  afterAll(() => scratch[Symbol.dispose]());

  test.each(Object.entries(verbs))("%s reads no more than with a few", async (_verb, verb) => {
    const least = await pagesReadBy(verb, withFew, few);
    const most = await pagesReadBy(verb, withMany, leases);
    expect(most).toBeGreaterThan(0);
    expect(most - least).toBeLessThanOrEqual(pagesOfHigherTrees);
  });
});

test("an exhausted range set is as quick about what cools in it beside another one with very many older ones", async () => {
  using scratch = scratchDir();
  const cooldownMs = 24 * 3600_000;
  const configOf = (range: object) =>
    parseIpamConfig({
      conf: new Fields({ ipam: { ranges: [[range]], cooldownMs } }),
      network,
      version: "1.0.0",
      args: "",
    });
  const coolingSinceMs = Date.now() - 1000;
  const subnet = parseCidr("10.64.0.0/18")!;
  await fillStore(scratch.path, { network, subnet, shape: "packed", leases: 16_381, coolingSinceMs });
  // Few enough to be looked at one by one, and too many for that.
  const sets = [
    { config: configOf({ subnet: "10.65.0.0/24" }), size: 253 },
    { config: configOf({ subnet: "10.66.0.0/19", rangeEnd: "10.66.16.105" }), size: 4200 },
  ];
  {
    using allocator = await Allocator.open(scratch.path);
    for (const { config, size } of sets) {
      const ids = Array.from({ length: size }, (_, i) => `of ${size} ${i}`);
      for (const id of ids) allocator.allocate(owner(id), config);
      for (const i of [7, 3, 11]) {
        allocator.release(owner(ids[i] ?? ""), "cooling");
        Bun.sleepSync(2);
      }
    }
  }
  const all = await pagesReadBy((allocator) => allocator.list(network), scratch.path, 2);
  const given: string[] = [];
  for (const { config, size } of sets) {
    const add: Verb = (allocator) =>
      given.push(...allocator.allocate(owner(`next of ${size}`), config).leases.map(lastOctet));
    expect(await pagesReadBy(add, scratch.path, 2)).toBeLessThan(all / 2);
  }
  // What has cooled longest, though neither the first nor the last of its set.
  expect(given).toEqual(["9", "9"]);
});

const lastOctet = ({ address }: Lease): string => formatIp(address.ip).replace(/.*\./, "");

test("this measure sees what it looks for: whoever reads all leases reads all pages", async () => {
  using scratch = scratchDir();
  const leases = 20_000;
  await fillStore(scratch.path, { network, subnet: parseCidr("10.0.0.0/16")!, shape: "packed", leases });
  expect(await pagesReadBy((allocator) => allocator.list(network), scratch.path, leases)).toBeGreaterThan(1000);
});

test("a GC of many leases is many transactions, so that nobody waits for all of them", async () => {
  using scratch = scratchDir();
  await fillStore(scratch.path, { network, subnet: parseCidr("10.0.0.0/16")!, shape: "packed", leases: 1_200 });
  using allocator = await Allocator.open(scratch.path);
  using runs = vi.spyOn(StatementSync.prototype, "run");
  expect(allocator.retain(network, [], "cooling")).toHaveLength(1_200);
  const commits = runs.mock.contexts.filter((statement) => (statement as StatementSync).sourceSQL === "COMMIT");
  expect(commits.length).toBeGreaterThanOrEqual(3);
});
