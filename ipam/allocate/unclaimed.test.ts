import { expect, test } from "vitest";
import { allocatorInMemory, ownerOf } from "./allocator-in-memory.ts";

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
  expect(allocator.retain("net", keep, "cooling", 2)).toEqual([ownerOf("stale")]);
  expect(idsLeft(allocator)).toEqual(["listed", "young"]);
  // Whoever does not say since when the list is known has just made it.
  expect(allocator.retain("net", keep, "cooling")).toEqual([ownerOf("young")]);
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
  expect(allocator.retain("net", [], "cooling", 1)).toEqual([ownerOf("stale")]);
  expect(idsLeft(allocator)).toEqual(["waited for", "before the page"]);
});

test("leases from before the clock was set back are no younger than a list", () => {
  const { allocator, add, clock } = allocatorInMemory();
  add("stale");
  clock.ms -= 86_400_000;
  expect(allocator.retain("net", [], "cooling", 5)).toEqual([ownerOf("stale")]);
});
