import { expect, test } from "vitest";
import type { IpamHost } from "../service/ipam-rpcs.ts";
import { statsOf } from "../service/ipam-rpcs.ts";
import { allocatorInMemory, configOf, five, refusal } from "./allocator-in-memory.ts";
import { cooldownOf } from "./cooldown.ts";

const ids = ["a", "b", "c", "d", "e"];

/** Five pods that had all five addresses have left. */
function emptied() {
  const memory = allocatorInMemory();
  for (const id of ids) memory.add(id);
  for (const id of ids) memory.del(id);
  return memory;
}

test("an address whose cooldown is over counts as free, without an ADD between", async () => {
  const { allocator, clock } = emptied();
  const host: IpamHost = {
    allocator,
    dataDir: "/none",
    sections: new Map([["net", { subnet: "10.0.0.0/29", cooldownMs: 1000 }]]),
    release: () => [],
    collect: async () => ({ removed: [], failures: [] }),
  };
  clock.ms += 999;
  expect(allocator.usage("net", five)).toMatchObject([{ total: 5n, used: 0, cooling: 5, free: 0n }]);
  expect(allocator.counts()).toMatchObject([{ allocated: 0, cooling: 5 }]);
  expect([...allocator.pages()].flat()).toHaveLength(5);
  expect(await statsOf(host, undefined)).toMatchObject([{ cooling: 5, ranges: [{ cooling: 5, free: "0" }] }]);
  clock.ms += 1;
  expect(allocator.usage("net", five)).toMatchObject([{ total: 5n, used: 0, cooling: 0, free: 5n }]);
  expect(allocator.counts()).toMatchObject([{ allocated: 0, cooling: 0 }]);
  expect([...allocator.pages()]).toEqual([]);
  expect(await statsOf(host, undefined)).toMatchObject([{ cooling: 0, ranges: [{ cooling: 0, free: "5" }] }]);
});

test("a refusal counts as the others do", () => {
  const { allocator, add, clock } = emptied();
  clock.ms += 1000;
  const asked = configOf({ subnet: "10.0.0.0/29", cooldownMs: 1000 }, { runtimeConfig: { ips: ["10.0.0.1"] } });
  expect(refusal(() => add("f", asked)).details).toBe("5 of 5 addresses free, 0 cooling");
  expect(allocator.exhausted("net", five)).toEqual([]);
});

test("what waits for its interface to go is never free by itself", () => {
  const { allocator, add, clock } = allocatorInMemory();
  add("a");
  allocator.release({ network: "net", sandboxId: "a", ifname: "eth0" }, "releasing");
  clock.ms += 1_000_000;
  expect(allocator.usage("net", five)).toMatchObject([{ used: 1, releasing: 1, free: 4n }]);
});

test("the cooldown of the latest ADD is remembered, and the usual one needs no note", () => {
  const { store, add } = allocatorInMemory();
  expect(cooldownOf(store, "net")).toBe(30_000);
  add("a");
  expect(cooldownOf(store, "net")).toBe(1000);
  add("b", configOf({ subnet: "10.0.0.0/29" }));
  expect([cooldownOf(store, "net"), store.mark("cooldown net")]).toEqual([30_000, undefined]);
  store.transaction((): void => store.setMark("cooldown net", "what a later release has to say"));
  expect(cooldownOf(store, "net")).toBe(30_000);
});
