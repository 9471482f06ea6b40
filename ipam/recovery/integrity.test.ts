import { expect, test } from "vitest";
import { formatIp, parseCidr } from "../../shared/net/ip.ts";
import { allocatorInMemory, configOf, ownerOf, podOf, refusal } from "../../test/fakes/allocator-in-memory.ts";
import {
  completeByList,
  declareIncomplete,
  haveLeases,
  isNameless,
  missingSince,
  namelessOwner,
  restoreLeases,
} from "./integrity.ts";

const attachment = (containerId: string, ifname = "eth0") => ({ containerId, ifname });

test.each([
  ["nothing runs", [], true],
  ["what runs has leases", [attachment("a"), attachment("b")], true],
  ["one has none", [attachment("a"), attachment("other")], false],
  ["one has left", [attachment("a"), attachment("left")], false],
  ["another interface", [attachment("a", "eth1")], false],
  ["any interface, as a lease without a name may be of it", [attachment("any", "eth1")], true],
])("the list of what runs says that all is known: %s", (_name, running, wanted) => {
  const { store, allocator, add, del } = allocatorInMemory();
  for (const id of ["a", "b", "left"]) add(id);
  del("left");
  allocator.allocate(ownerOf("any", ""), configOf({ subnet: "10.0.0.0/29" }));
  expect(haveLeases(store, "net", running)).toBe(wanted);
  store.transaction((): void => {
    declareIncomplete(store, "aside");
    completeByList(store, "net", running);
  });
  expect(missingSince(store, "net")).toBe(wanted ? undefined : "aside");
  expect(missingSince(store, "other")).toBe("aside");
});

test("who is lost is known by the name that it got", () => {
  const [four, six] = [parseCidr("10.0.0.9/24")!, parseCidr("fd00::9/64")!];
  expect([four, six].map(({ ip }) => namelessOwner("net", ip))).toEqual([
    { network: "net", sandboxId: "unreadable-10.0.0.9", ifname: "" },
    { network: "net", sandboxId: "unreadable-fd00__9", ifname: "" },
  ]);
  expect(isNameless(namelessOwner("net", four.ip))).toBe(true);
  expect([isNameless(ownerOf("unreadable-x")), isNameless(ownerOf("a", ""))]).toEqual([false, false]);
});

test.each<readonly [string, string | undefined, boolean, readonly [number, number]]>([
  ["of nobody", undefined, false, [1, 0]],
  ["of its own", "own", false, [0, 0]],
  ["of its own, which cools", "own, cooling", false, [1, 0]],
  ["of one that does not use it", "other", false, [1, 0]],
  ["of one that uses it", "other", true, [0, 1]],
  ["of one that has left", "other, cooling", true, [1, 0]],
])("an address that an interface has is leased to it: one %s", (_name, held, isInUse, [restored, clashes]) => {
  const { store, allocator, add, del, clock } = allocatorInMemory();
  const config = configOf({ subnet: "10.0.0.0/29" });
  add("first", config);
  const [id = "", cools] = held?.split(", ") ?? [];
  if (held !== undefined) allocator.allocate(ownerOf(id), config, podOf("web"));
  if (cools !== undefined) del(id);
  clock.ms++;
  const before = store.select({ by: "address", network: "net", ip: parseCidr("10.0.0.3/29")!.ip })[0];
  const context = { rangeSets: config.rangeSets, bootId: "now", now: () => clock.ms, isInUse: () => isInUse };
  const inUse = { owner: ownerOf("own"), addresses: [parseCidr("10.0.0.3/29")!] };
  const found = store.transaction(() => restoreLeases(store, inUse, context));
  expect([found.leases.length, found.clashes.length]).toEqual([restored, clashes]);
  const [after] = store.select({ by: "address", network: "net", ip: parseCidr("10.0.0.3/29")!.ip });
  if (restored === 0) expect(after).toEqual(before);
  else
    expect(after).toMatchObject({
      owner: ownerOf("own"),
      state: "allocated",
      rangeSet: 0,
      bootId: "now",
      generation: held === undefined ? 2 : 3,
      allocatedAtMs: clock.ms,
    });
  if (restored === 1) expect(after?.pod).toEqual(id === "own" ? podOf("web") : undefined);
  expect(store.mark("generation")).toBe(String(after?.generation));
  expect(after?.gateway && formatIp(after.gateway)).toBe("10.0.0.1");
});

test("until all is known nobody new gets an address, and that says why and which database was damaged", () => {
  const { store, allocator, add } = allocatorInMemory();
  add("known");
  expect([allocator.isComplete("net"), allocator.requireComplete("net")]).toEqual([true, undefined]);
  store.transaction((): void => declareIncomplete(store, "leases.db.damaged-x"));
  expect(allocator.isComplete("net")).toBe(false);
  const refused = expect.objectContaining({
    code: 101,
    message: expect.stringContaining('some leases of network "net" were lost when the database was damaged'),
    details: expect.stringContaining('the damaged database is "leases.db.damaged-x"'),
  });
  for (const work of [() => allocator.requireComplete("net"), () => add("new")]) expect(refusal(work)).toEqual(refused);
  allocator.declareComplete("net");
  expect(add("new")).toBe("10.0.0.3");
  expect(() => allocator.requireComplete("other")).toThrow("were lost");
});
