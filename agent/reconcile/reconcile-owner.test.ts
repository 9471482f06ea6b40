import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { CniCode } from "../../shared/errors.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { type Decision, keep, type OwnerRecord, reconcileOwner } from "./reconcile-owner.ts";

const owner = ownerOf("a");
const key = ownerKey(owner);
let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
  parts.allocator.allocate(owner, parts.ipam);
  parts.dataPath.standing.set(key, { owner, ownLease: true, hostIfname: "ve-a" });
  parts.lastAddAt.set(key, 7);
});
afterEach(() => parts[Symbol.dispose]());

const carryOut = (decision: Decision) => reconcileOwner(parts, { owner, what: "the test", decide: () => decision });
const states = (): string[] => parts.allocator.list().map(({ state }) => state);
const summary = () => [states(), parts.dataPath.containers(), parts.lastAddAt.size, parts.pendingCleanup.size];

test("decides by the record as it is when its turn comes, and not as it was when it was asked", async () => {
  const adding = Promise.withResolvers<void>();
  const add = parts.mutex.run(key, { what: "ADD" }, async () => {
    await adding.promise;
    parts.allocator.release(owner, "releasing");
    parts.allocator.recordPendingDetach(owner);
    parts.lastAddAt.set(key, 8);
  });
  let seen: OwnerRecord | undefined;
  const decide = (now: OwnerRecord): Decision => {
    seen = now;
    return keep;
  };
  const done = reconcileOwner(parts, { owner, what: "the test", decide });
  adding.resolve();
  await add;
  expect(await done).toBeUndefined();
  expect(seen).toMatchObject({ leases: [], hasPendingDetach: true, needsCleanup: false, lastAddAt: 8 });
  expect(seen?.releasing).toMatchObject([{ state: "releasing" }]);
  expect(summary()).toEqual([["releasing"], ["a"], 1, 0]);
});

test("waits for calls of the same owner as long as it takes, or as it is told to", async () => {
  const adding = Promise.withResolvers<void>();
  const add = parts.mutex.run(key, { what: "ADD" }, () => adding.promise);
  const cool = { t: "cool" } as const;
  const waiting = carryOut(cool);
  const bounded = reconcileOwner(parts, { owner, what: "the test", timeoutMs: 1, decide: () => cool });
  await expect(bounded).rejects.toMatchObject({ code: CniCode.tryAgainLater });
  adding.resolve();
  await add;
  expect(await waiting).toBe(cool);
});

test.each<[string, Decision, unknown[]]>([
  ["detach", { t: "detach" }, [["cooling"], [], 0, 0]],
  ["detach, released first", { t: "detach", first: "release" }, [["cooling"], [], 0, 0]],
  ["detach, remembered first", { t: "detach", first: "remember" }, [["cooling"], [], 0, 0]],
  ["cool", { t: "cool" }, [["cooling"], ["a"], 1, 0]],
])("carries out: %s", async (_, decision, after) => {
  expect(await carryOut(decision)).toBe(decision);
  expect(summary()).toEqual(after);
});

test.each<[string, Decision, unknown[]]>([
  ["is noticed again", { t: "detach" }, [["allocated"], ["a"], 1, 0]],
  ["is on record by its lease", { t: "detach", first: "release" }, [["releasing"], ["a"], 1, 0]],
  ["is remembered", { t: "detach", first: "remember" }, [["allocated"], ["a"], 1, 1]],
])("what the data path refuses %s", async (_, decision, after) => {
  parts.dataPath.before = () => {
    throw new Error("busy");
  };
  await expect(carryOut(decision)).rejects.toThrow("busy");
  expect(summary()).toEqual(after);
});

test("an attachment that was added again keeps its interface, and nothing else was done where nothing is left to cool", async () => {
  parts.pendingCleanup.set(key, owner);
  expect(await carryOut({ t: "added again", cool: [] })).toBeUndefined();
  expect(summary()).toEqual([["allocated"], ["a"], 1, 0]);
});

test.each([
  ["made", true, 7],
  ["not missing any more", false, undefined],
])("an interface that is %s again counts so", async (_name, isMade, since) => {
  parts.lastAddAt.delete(key);
  if (since !== undefined) parts.lastAddAt.set(key, since);
  parts.dataPath.remake = async () => isMade;
  const decision: Decision = { t: "remake", missing: { owner, ownLease: true }, addresses: undefined };
  expect(await carryOut(decision)).toBe(isMade ? decision : undefined);
  expect(parts.lastAddAt.get(key)).toBe(since);
});

test("an interface that the agent knew nothing of is attached from the boot on, once it is made again", async () => {
  parts.lastAddAt.delete(key);
  parts.dataPath.remake = async () => true;
  await carryOut({ t: "remake", missing: { owner, ownLease: true }, addresses: [] });
  expect(parts.lastAddAt.get(key)).toBe(0);
});
