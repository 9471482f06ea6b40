import { describe, expect, test } from "vitest";
import { allocatorInMemory, configOf, ipsOf, ownerOf, podOf, refusal } from "../../test/fakes/allocator-in-memory.ts";
import { random } from "../../test/support/random.ts";

/** Every order of these. */
function orders<T>(items: readonly T[]): readonly T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, i) => orders(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

const calls = ["ADD old", "DEL old", "DEL old late", "ADD new", "DEL new"] as const;

/** One address, or more than enough; the sandboxes are of one pod. */
const settings = [
  { subnet: "10.0.0.0/30", sticky: false },
  { subnet: "10.0.0.0/30", sticky: true },
  { subnet: "10.0.0.0/29", sticky: true },
  { subnet: "10.0.0.0/29", sticky: true, cooldownMs: 0 },
];

describe.each(settings)("two sandboxes of one pod, %j", (ipam) => {
  test.each(["cooling", "releasing"] as const)("no DEL of one frees what the other has, in any order, to %s", (to) => {
    for (const order of orders(calls)) {
      const { allocator, add } = allocatorInMemory();
      const config = configOf(ipam);
      const held = new Map<string, string>();
      for (const call of order) {
        const [verb, id] = call.split(" ") as [string, string];
        if (verb === "DEL") {
          allocator.release(ownerOf(id), to);
          held.delete(id);
        } else {
          try {
            held.set(id, add(id, config, podOf("web-0")));
          } catch (caught) {
            // One address, and the other sandbox has it still or has not been unwired.
            expect((caught as Error).message).toContain("0 of 1 addresses free");
          }
        }
        const found = ["old", "new"].filter((one) => allocator.find(ownerOf(one)).length > 0);
        expect(new Set(found), order.join(", ")).toEqual(new Set(held.keys()));
        for (const one of found) expect(ipsOf(allocator.find(ownerOf(one)))).toEqual([held.get(one)]);
        expect(new Set(held.values()).size, order.join(", ")).toBe(held.size);
      }
    }
  });
});

test("what is known of an old lease ends no later one of the same address or the same owner", () => {
  const { allocator, add, boot } = allocatorInMemory();
  const one = configOf({ subnet: "10.0.0.0/30" });
  const first = allocator.allocate(ownerOf("old"), one);
  const [releasing] = allocator.release(ownerOf("old"), "releasing");
  allocator.finishRelease(releasing!);
  expect(add("new", one)).toBe("10.0.0.2");
  // An undo, an unwiring and a reclaim that come late.
  allocator.undo(first, "cooling");
  expect(allocator.finishRelease(releasing!)).toBe(false);
  expect(boot("boot-2").reclaim(first.leases[0]!, "cooling")).toBe(false);
  expect(ipsOf(allocator.find(ownerOf("new")))).toEqual(["10.0.0.2"]);
});

describe("a lease of another boot", () => {
  test("is reclaimed as it was seen, once", () => {
    const { allocator, boot } = allocatorInMemory("boot-1");
    const [lease] = allocator.allocate(ownerOf("a"), configOf({ subnet: "10.0.0.0/30" })).leases;
    const after = boot("boot-2");
    expect(after.list().map(({ bootId }) => bootId === after.bootId)).toEqual([false]);
    expect(after.reclaim(lease!, "cooling")).toBe(true);
    expect(after.reclaim(lease!, "cooling")).toBe(false);
    expect(after.list()).toMatchObject([{ state: "cooling" }]);
  });

  test("is not reclaimed where its owner was heard of in the meantime", () => {
    const { allocator, boot } = allocatorInMemory("boot-1");
    const config = configOf({ subnet: "10.0.0.0/30" });
    const [lease] = allocator.allocate(ownerOf("a"), config).leases;
    const after = boot("boot-2");
    expect(after.allocate(ownerOf("a"), config).created).toBe(false);
    expect(after.reclaim(lease!, "cooling")).toBe(false);
    expect(after.find(ownerOf("a"))).toHaveLength(1);
  });
});

describe("with exactly as many addresses as pods", () => {
  test.each([
    ["cooling", 1, false],
    ["cooling", 2, true],
    ["releasing", 3, false],
  ] as const)("churn goes on, by way of %s, seed %i, sticky %s", (to, seed, sticky) => {
    const { allocator, add, clock } = allocatorInMemory();
    const config = configOf({ subnet: "10.0.0.0/27", sticky, cooldownMs: 3_600_000 });
    const next = random(seed);
    const pods = Array.from({ length: 29 }, (_, i) => ({ pod: podOf(`p${i}`), sandbox: `first-${i}` }));
    for (const { pod, sandbox } of pods) add(sandbox, config, pod);
    expect(refusal(() => add("one too many", config)).message).toContain("0 of 29 addresses free");
    for (let step = 0; step < 1000; step++) {
      clock.ms += next(5);
      const one = pods[next(pods.length)]!;
      const before = allocator.find(ownerOf(one.sandbox));
      for (const lease of allocator.release(ownerOf(one.sandbox), to))
        if (to === "releasing") allocator.finishRelease(lease);
      one.sandbox = `s${step}`;
      // The one address that is left cools for an hour, and is given all the same.
      expect(add(one.sandbox, config, one.pod)).toBe(ipsOf(before).join());
    }
    expect(allocator.list().map(({ state }) => state)).toEqual(Array(29).fill("allocated"));
  });
});
