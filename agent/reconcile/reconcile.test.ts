import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { Janitor } from "./janitor.ts";
import { reconcile, takeNetworksOver } from "./reconcile.ts";

let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

function stand(owner: Owner, ownLease = true): void {
  parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease, hostIfname: `ve-${owner.sandboxId}` });
}

/** An interface whose lease ended while no agent ran. */
function orphan(sandboxId: string): void {
  const owner = ownerOf(sandboxId);
  parts.allocator.allocate(owner, parts.ipam);
  parts.allocator.release(owner, "cooling");
  stand(owner);
}

const states = (sandboxId: string): string[] =>
  parts.allocator
    .list()
    .filter((lease) => lease.owner.sandboxId === sandboxId)
    .map((lease) => lease.state);

const logged = (message: string): Record<string, unknown>[] =>
  parts.lines.map((line) => JSON.parse(line)).filter((line) => line.message === message);

describe("an interface whose lease has ended", () => {
  test("goes, and one whose removal fails is tried again by the janitor, and costs the others nothing", async () => {
    for (const id of ["refused", "gone"]) orphan(id);
    parts.dataPath.before = (_action, { sandboxId }) => {
      if (sandboxId === "refused") throw new Error("busy");
    };
    await reconcile(parts);
    expect(parts.dataPath.containers()).toEqual(["refused"]);
    expect([...parts.pendingCleanup.values()]).toEqual([ownerOf("refused")]);
    expect(logged("tidying up failed, the janitor goes on with it")).toMatchObject([{ error: "busy" }]);
    parts.dataPath.before = () => undefined;
    await new Janitor(parts, { intervalMs: 1, staleGraceMs: 60_000 }).round();
    expect([parts.dataPath.containers(), parts.pendingCleanup.size]).toEqual([[], 0]);
  });

  test("stays where an ADD has taken a lease since the look", async () => {
    orphan("again");
    const holding = Promise.withResolvers<void>();
    const add = parts.mutex.run(ownerKey(ownerOf("again")), { what: "ADD" }, async () => {
      await holding.promise;
      parts.allocator.allocate(ownerOf("again"), parts.ipam);
    });
    const done = reconcile(parts);
    holding.resolve();
    await Promise.all([add, done]);
    expect([parts.dataPath.containers(), parts.pendingCleanup.size]).toEqual([["again"], 0]);
    expect(states("again")).toEqual(["allocated"]);
  });

  test("is taken away while the owner's mutex is held, eight at a time", async () => {
    for (let i = 0; i < 20; i++) orphan(`o${i}`);
    let now = 0;
    let most = 0;
    parts.dataPath.before = async (_action, owner) => {
      expect(parts.mutex.isBusy(ownerKey(owner))).toBe(true);
      most = Math.max(most, ++now);
      await Bun.sleep(1);
      now--;
    };
    await reconcile(parts);
    expect([parts.dataPath.containers(), most]).toEqual([[], 8]);
  });
});

test("what has left is finished: its interface goes, its addresses cool", async () => {
  const owner = ownerOf("left");
  parts.allocator.allocate(owner, parts.ipam);
  stand(owner);
  parts.allocator.release(owner, "releasing");
  await reconcile(parts);
  expect([parts.dataPath.containers(), states("left")]).toEqual([[], ["cooling"]]);
});

test("what is right is adopted as older than every DEL, and noted as wired where the lease is ours", async () => {
  const [own, foreign] = [ownerOf("own"), ownerOf("foreign")];
  parts.allocator.allocate(own, parts.ipam);
  stand(own);
  stand(foreign, false);
  const noted: (readonly Owner[])[] = [];
  const noteInterfaces = parts.allocator.noteInterfaces.bind(parts.allocator);
  parts.allocator.noteInterfaces = (owners) => {
    noted.push([...owners]);
    noteInterfaces(owners);
  };
  const plan = await reconcile(parts);
  expect([...parts.lastAddAt]).toEqual([
    [ownerKey(own), 0],
    [ownerKey(foreign), 0],
  ]);
  expect(noted).toEqual([[own]]);
  expect(parts.allocator.find(own).map((lease) => parts.allocator.hasInterface(lease))).toEqual([true]);
  expect(plan.adopt).toHaveLength(2);
});

test("says of each that does not agree what it is, and how many there are of each kind", async () => {
  orphan("orphan");
  stand(ownerOf("lost"));
  parts.dataPath.addressesOf.set(ownerKey(ownerOf("lost")), [{ ip: { family: 4, value: 0x0a09_0063n }, prefix: 24 }]);
  stand({ ...ownerOf("far"), network: "elsewhere" });
  parts.allocator.allocate(ownerOf("bare"), parts.ipam);
  const list = parts.allocator.list.bind(parts.allocator);
  parts.allocator.allocate(ownerOf("old"), parts.ipam);
  parts.allocator.list = (network) =>
    list(network).map((lease) => (lease.owner.sandboxId === "old" ? { ...lease, bootId: "before" } : lease));
  await reconcile(parts);
  const named = (message: string): unknown[] => logged(message).map(({ container }) => container);
  expect(named("an interface of ours has a lease that ended and is removed")).toEqual(["orphan"]);
  expect(named("an interface of ours has no lease and is given one")).toEqual(["lost"]);
  expect(logged("an interface of ours has no lease and is kept")).toMatchObject([
    { container: "far", hostIfname: "ve-far", reason: 'network "elsewhere" is not configured here' },
  ]);
  expect(logged("a lease has no interface")).toMatchObject([
    { container: "bare", wired: false, address: expect.stringMatching(/^10\.9\.0\.\d+\/24$/) },
  ]);
  expect(named("a lease of an earlier boot has no interface and is given back unless an ADD claims it")).toEqual([
    "old",
  ]);
  const booted = "the node has booted since leases were given out: none is given back before the grace is over";
  expect(logged(booted)).toMatchObject([{ leases: 1 }]);
  expect(logged("reconciled")).toMatchObject([
    { adopted: 0, finished: 0, orphans: 1, restored: 1, doubtful: 1, missing: 1, suspect: 1 },
  ]);
  expect(parts.dataPath.containers()).toEqual(["far", "lost"]);
});

test("a node without a boot between says nothing of one", async () => {
  parts.allocator.allocate(ownerOf("bare"), parts.ipam);
  await reconcile(parts);
  expect(parts.lines.join()).not.toContain("has booted");
});

test("what host-local leased in the agent's networks is known from the start, with its subnet", async () => {
  using parts = await partsInMemory();
  const directory = `${parts.config.dataDir}/pods`;
  mkdirSync(directory);
  writeFileSync(`${directory}/10.9.0.7`, "a\r\neth0");
  writeFileSync(`${directory}/10.9.0.8`, "");
  await takeNetworksOver(parts);
  expect(parts.allocator.find(ownerOf("a")).map(({ address }) => formatCidr(address))).toEqual(["10.9.0.7/24"]);
  expect(parts.lines.join("")).toContain("2 taken over, 1 unreadable");
});

test("a directory that cannot be taken over is logged, and does not end the start", async () => {
  using parts = await partsInMemory();
  const directory = `${parts.config.dataDir}/pods`;
  mkdirSync(directory);
  symlinkSync("/nowhere", `${directory}/lock`);
  await takeNetworksOver(parts);
  expect(parts.lines.join("")).toContain("Cannot lock host-local's directory");
});
