import { expect, test } from "vitest";
import { allocatorInMemory, five, ownerOf, podOf } from "../../test/fakes/allocator-in-memory.ts";
import { MemoryStore } from "../../test/fakes/memory-store.ts";
import type { Lease } from "../lease.ts";
import { interfaceMark } from "./marks.ts";
import { forgetInterface, hasInterface, noteInterface } from "./owner-leases.ts";

test("a lease without its pod's name, as one that was made anew, gets it with the pod's next ADD", () => {
  const { allocator, add } = allocatorInMemory();
  add("a");
  expect(allocator.find(ownerOf("a"))[0]?.pod).toBe(undefined);
  add("a", five, podOf("web"));
  expect(allocator.find(ownerOf("a"))[0]).toMatchObject({ pod: podOf("web"), generation: 1 });
  add("a", five, podOf("other"));
  expect(allocator.find(ownerOf("a"))[0]?.pod).toEqual(podOf("web"));
});

test("an interface is that of the leases for which it was made, and not of a later one of the same owner", () => {
  using store = new MemoryStore();
  const owner = ownerOf("a");
  const [first, second, third] = [1, 2, 3].map((generation) => ({ owner, generation })) as [Lease, Lease, Lease];
  const noted = (): readonly boolean[] => [first, second, third].map((lease) => hasInterface(store, lease));
  expect(noted()).toEqual([false, false, false]);
  store.transaction((): void => noteInterface(store, owner, []));
  expect(store.mark(interfaceMark(owner))).toBeUndefined();
  for (let i = 0; i < 2; i++) store.transaction((): void => noteInterface(store, owner, [second, first]));
  expect(noted()).toEqual([true, true, false]);
  store.transaction((): void => forgetInterface(store, second));
  expect(noted()).toEqual([false, false, false]);
});
