import { expect, test } from "vitest";
import { allocatorInMemory, configOf, ownerOf } from "../../test/fakes/allocator-in-memory.ts";

const idsLeft = (allocator: ReturnType<typeof allocatorInMemory>["allocator"]): readonly string[] =>
  allocator
    .list()
    .filter(({ state }) => state === "allocated")
    .map(({ owner }) => owner.sandboxId);

test("peers 2: a GC frees nobody who came after its list was made, and everybody before who is not on it", () => {
  const { allocator, add, clock } = allocatorInMemory();
  for (const id of ["listed", "stale"]) add(id);
  clock.ms += 2;
  add("young");
  clock.ms++;
  const keep = [{ containerId: "listed", ifname: "eth0" }];
  expect(allocator.retain("net", keep, "cooling", () => 2)).toEqual([ownerOf("stale")]);
  expect(idsLeft(allocator)).toEqual(["listed", "young"]);
  // Whoever does not say since when the list is known has just made it.
  expect(allocator.retain("net", keep, "cooling")).toEqual([ownerOf("young")]);
});

test("peers 2: a GC frees nobody who came after its list was made where its process waits between two clocks", () => {
  const { allocator, add, clock } = allocatorInMemory();
  add("stale");
  clock.ms += 20;
  const made = clock.ms++;
  add("young");
  const ageThenWait = (): number => {
    const ageMs = clock.ms - made;
    clock.ms += 10;
    return ageMs;
  };
  expect(allocator.retain("net", [], "cooling", ageThenWait)).toEqual([ownerOf("stale")]);
  expect(idsLeft(allocator)).toEqual(["young"]);
});

test("peers 2: a GC frees nobody who gets a lease while it waits for the lock or reads", () => {
  const { allocator, store, add, clock } = allocatorInMemory();
  add("stale");
  clock.ms += 2;
  const [transaction, select] = [store.transaction.bind(store), store.select.bind(store)];
  store.transaction = (work) => {
    store.transaction = transaction;
    clock.ms += 5;
    add("waited for");
    clock.ms += 5;
    return transaction(work);
  };
  store.select = (query) => {
    if (query.by === "page") {
      store.select = select;
      clock.ms += 5;
      add("before the page");
    }
    return select(query);
  };
  expect(allocator.retain("net", [], "cooling", () => 1)).toEqual([ownerOf("stale")]);
  expect(idsLeft(allocator)).toEqual(["waited for", "before the page"]);
});

const asking = configOf({ subnet: "10.0.0.0/29", cooldownMs: 1000 }, { runtimeConfig: { ips: ["10.0.0.2"] } });

test.each([
  ["another sandbox", "new", 1],
  ["the same sandbox", "stale", 1],
  ["nobody: it was left", undefined, 0],
])("an address that goes to %s while a GC waits for the lock stays as it is then", (_, id, allocated) => {
  const { allocator, store, add, clock } = allocatorInMemory();
  add("stale");
  clock.ms += 2;
  const transaction = store.transaction.bind(store);
  let transactions = 0;
  store.transaction = (work) => {
    // The first one is about the network, before any lease is read.
    if (++transactions === 2) {
      store.transaction = transaction;
      allocator.release(ownerOf("stale"), "releasing");
      for (const lease of allocator.releasing(ownerOf("stale"))) if (id !== undefined) allocator.finishRelease(lease);
      if (id !== undefined) add(id, asking);
    }
    return transaction(work);
  };
  expect(allocator.retain("net", [], "cooling", () => 1)).toEqual([]);
  expect(allocator.list().map(({ owner, state }) => [owner.sandboxId, state])).toEqual([
    [id ?? "stale", id === undefined ? "releasing" : "allocated"],
  ]);
  expect(idsLeft(allocator)).toHaveLength(allocated);
});

test("leases from before the clock was set back are no younger than a list", () => {
  const { allocator, add, clock } = allocatorInMemory();
  add("stale");
  clock.ms -= 86_400_000;
  expect(allocator.retain("net", [], "cooling", () => 5)).toEqual([ownerOf("stale")]);
});
