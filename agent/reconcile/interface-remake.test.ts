import { afterEach, beforeEach, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { remakeInterface } from "./interface-lost.ts";
import { Janitor } from "./janitor.ts";

let parts: PartsInMemory;
let janitor: Janitor;

beforeEach(async () => {
  parts = await partsInMemory();
  janitor = new Janitor(parts, { intervalMs: 1, staleGraceMs: 60_000 });
});
afterEach(async () => {
  await janitor.stop();
  parts[Symbol.dispose]();
});

/** Others have taken the interface away. */
function lose(sandboxId: string, ownLease = true): void {
  const owner = ownerOf(sandboxId);
  parts.dataPath.lost.set(ownerKey(owner), { owner, ownLease });
}

test("what was lost is made again with the addresses of its lease, and counts as attached", async () => {
  parts.allocator.allocate(ownerOf("a"), parts.ipam);
  lose("a");
  lose("other-plugin", false);
  await janitor.round();
  expect(parts.dataPath.remade).toEqual(["a 10.9.0.2", "other-plugin undefined"]);
  expect([...parts.lastAddAt.keys()]).toContain(ownerKey(ownerOf("a")));
  await janitor.round();
  expect(parts.dataPath.remade).toHaveLength(2);
});

test("whose owner has left, or never had a lease, is not", async () => {
  for (const id of ["gone", "departed"]) parts.allocator.allocate(ownerOf(id), parts.ipam);
  parts.allocator.release(ownerOf("gone"), "releasing");
  parts.allocator.recordPendingDetach(ownerOf("departed"));
  for (const id of ["gone", "departed", "never"]) lose(id);
  await janitor.round();
  expect(parts.dataPath.remade).toEqual([]);
});

test("a DEL that came first while the owner's mutex is held counts", async () => {
  parts.allocator.allocate(ownerOf("a"), parts.ipam);
  lose("a");
  const holding = Promise.withResolvers<void>();
  const del = parts.mutex.run(ownerKey(ownerOf("a")), { what: "DEL" }, async () => {
    await holding.promise;
    parts.allocator.release(ownerOf("a"), "releasing");
  });
  const round = janitor.round();
  holding.resolve();
  await Promise.all([del, round]);
  expect(parts.dataPath.remade).toEqual([]);
});

test("one that cannot be made again is tried later, and holds up no other", async () => {
  for (const id of ["a", "b"]) {
    parts.allocator.allocate(ownerOf(id), parts.ipam);
    lose(id);
  }
  parts.dataPath.before = (_, { sandboxId }) => {
    if (sandboxId === "a") throw new Error("HNS is away");
  };
  await janitor.round();
  expect(parts.dataPath.remade).toEqual(["b 10.9.0.3"]);
  parts.dataPath.before = () => undefined;
  await expect
    .poll(async () => {
      await janitor.round();
      return parts.dataPath.remade;
    })
    .toEqual(["b 10.9.0.3", "a 10.9.0.2"]);
});

test.each([
  ["is released", () => parts.allocator.release(ownerOf("a"), "releasing")],
  ["is made by others", () => parts.dataPath.lost.clear()],
])("one that %s while the owner's mutex is waited for is left alone", async (_name, change) => {
  parts.allocator.allocate(ownerOf("a"), parts.ipam);
  lose("a");
  const holding = Promise.withResolvers<void>();
  const other = parts.mutex.run(ownerKey(ownerOf("a")), { what: "DEL" }, async () => {
    await holding.promise;
    change();
  });
  const remaking = remakeInterface(parts, { owner: ownerOf("a"), ownLease: true });
  holding.resolve();
  await other;
  expect([await remaking, parts.dataPath.remade]).toEqual([false, []]);
});
