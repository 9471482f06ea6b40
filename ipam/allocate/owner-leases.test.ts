import { expect, test } from "vitest";
import { allocatorInMemory, five, ownerOf, podOf } from "../../test/fakes/allocator-in-memory.ts";

test("a lease without its pod's name, as one that was made anew, gets it with the pod's next ADD", () => {
  const { allocator, add } = allocatorInMemory();
  add("a");
  expect(allocator.find(ownerOf("a"))[0]?.pod).toBe(undefined);
  add("a", five, podOf("web"));
  expect(allocator.find(ownerOf("a"))[0]).toMatchObject({ pod: podOf("web"), generation: 1 });
  add("a", five, podOf("other"));
  expect(allocator.find(ownerOf("a"))[0]?.pod).toEqual(podOf("web"));
});
