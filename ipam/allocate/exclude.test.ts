import { describe, expect, test } from "vitest";
import { allocatorInMemory, configOf, ipsOf, ownerOf, refusal } from "../../test/fakes/allocator-in-memory.ts";
import { MemoryStore } from "../../test/fakes/memory-store.ts";
import { random } from "../../test/support/random.ts";

describe("an excluded address", () => {
  test("is never given out, alone or in a block, by the section or by a range", () => {
    const { add } = allocatorInMemory();
    const some = configOf({
      exclude: ["10.0.0.3", "10.0.1.0/29"],
      ranges: [
        [
          { subnet: "10.0.0.0/29", exclude: ["10.0.0.4/31"] },
          { subnet: "10.0.1.0/28", rangeStart: "10.0.1.6" },
        ],
      ],
    });
    expect([..."abcd"].map((id) => add(id, some))).toEqual(["10.0.0.2", "10.0.0.6", "10.0.1.8", "10.0.1.9"]);
  });

  test("is never given out when the turn comes round, when all else cools, or when its owner comes back", () => {
    const { allocator, add, del, clock } = allocatorInMemory();
    for (const id of "abcde") add(id);
    for (const id of "bca") {
      clock.ms += 10;
      del(id);
    }
    const fewer = configOf({ subnet: "10.0.0.0/29", cooldownMs: 1000, exclude: ["10.0.0.3"] });
    // 10.0.0.3 cools longest, and "b" had it.
    expect([add("b", fewer), add("x", fewer)]).toEqual(["10.0.0.4", "10.0.0.2"]);
    const error = refusal(() => add("y", fewer));
    expect(error.message).toContain('range set "10.0.0.1-10.0.0.6" of network "net" has 0 of 4 addresses free');
    expect(error.details).toContain("4 allocated, 0 releasing, 0 cooling; besides, 1 for gateways, 1 excluded");
    expect(ipsOf(allocator.find(ownerOf("b")))).toEqual(["10.0.0.4"]);
  });

  test("that is requested is refused with that reason; a gateway is one first", () => {
    const { allocator, add } = allocatorInMemory();
    const asking = (ip: string) =>
      configOf({ subnet: "10.0.0.0/24", exclude: ["10.0.0.1", "10.0.0.32/28"] }, { runtimeConfig: { ips: [ip] } });
    const error = refusal(() => add("a", asking("10.0.0.40")));
    expect(error.code).toBe(101);
    expect(error.message).toBe(
      'Cannot allocate an address: the requested "10.0.0.40" is excluded by the configuration ("10.0.0.32-10.0.0.47"), wanted another address of range set "10.0.0.1-10.0.0.254"',
    );
    expect(refusal(() => add("a", asking("10.0.0.1"))).message).toContain('"10.0.0.1" is a gateway');
    expect(allocator.list()).toEqual([]);
  });

  test("stays its owner's where it is one since, but counts as excluded", () => {
    const { allocator, add } = allocatorInMemory();
    add("a");
    const without = configOf({ subnet: "10.0.0.0/29", exclude: ["10.0.0.2", "10.0.0.5"] });
    expect(add("a", without)).toBe("10.0.0.2");
    expect(allocator.usage("net", without)).toMatchObject([
      { total: 3n, used: 0, free: 3n, gateways: 1n, excluded: 2n },
    ]);
  });

  test("leaves a set that has nothing else without any address, and says so", () => {
    const { add } = allocatorInMemory();
    const none = configOf({ ranges: [[{ subnet: "10.0.0.0/29", exclude: ["10.0.0.0/29"] }]] });
    const error = refusal(() => add("a", none));
    expect(error.message).toContain("has 0 of 0 addresses free");
    expect(error.details).toContain("1 for gateways, 5 excluded");
  });
});

test("usage counts each kind by itself", () => {
  const { allocator, add } = allocatorInMemory();
  const config = configOf({
    ranges: [[{ subnet: "10.0.0.0/8", exclude: ["10.1.0.0/16"] }], [{ subnet: "fd00::/64" }]],
    exclude: ["fd00::1:0/112", "10.0.0.0/31"],
  });
  add("a", config);
  const shared = { used: 1, releasing: 0, cooling: 0, gateways: 1n };
  const total = 2n ** 24n - 2n - 1n - 2n ** 16n;
  expect(allocator.usage("net", config)).toEqual([
    { ...shared, range: "10.0.0.1-10.255.255.254", total, free: total - 1n, excluded: 2n ** 16n },
    {
      ...shared,
      range: "fd00::1-fd00::ffff:ffff:ffff:ffff",
      total: 2n ** 64n - 2n - 2n ** 16n,
      free: 2n ** 64n - 3n - 2n ** 16n,
      excluded: 2n ** 16n,
    },
  ]);
});

/** Counts how often the store is asked. */
function counting() {
  const store = new MemoryStore();
  const asked = { nextFree: 0, count: 0, select: 0 };
  for (const name of ["nextFree", "count", "select"] as const) {
    const original = store[name].bind(store) as (...args: unknown[]) => unknown;
    Object.assign(store, {
      [name]: (...args: unknown[]) => {
        asked[name]++;
        return original(...args);
      },
    });
  }
  return { store, asked };
}

test("a block that is excluded costs as much as one address", () => {
  const costOf = (exclude: string) => {
    const { store, asked } = counting();
    const { add, boot } = allocatorInMemory("boot", store);
    const config = configOf({ subnet: "10.0.0.0/8", exclude: [exclude] });
    // The next in turn is the first of what is excluded.
    add("a", configOf({ subnet: "10.0.0.0/8", exclude: [exclude] }, { runtimeConfig: { ips: ["10.15.255.255"] } }));
    add("b", config);
    boot("boot").usage("net", config);
    return asked;
  };
  expect(costOf("10.16.0.0/12")).toEqual(costOf("10.16.0.0"));
});

test.each([1, 2])("random exclusions: what is given is the next open address, until none is left; seed %i", (seed) => {
  const next = random(seed);
  for (let round = 0; round < 40; round++) {
    const { add } = allocatorInMemory();
    const exclude = Array.from({ length: next(6) }, () => {
      const prefix = 28 + next(5);
      const size = 2 ** (32 - prefix);
      return `10.0.0.${Math.floor(next(64) / size) * size}/${prefix}`;
    });
    const config = configOf({ subnet: "10.0.0.0/26", exclude });
    const blocked = (n: number): boolean =>
      exclude.some((text) => {
        const [address = "", prefix = ""] = text.split("/");
        const first = Number(address.split(".")[3]);
        return n >= first && n < first + 2 ** (32 - Number(prefix));
      });
    const open = Array.from({ length: 62 }, (_, i) => i + 1).filter((n) => n !== 1 && !blocked(n));
    expect(open.map((n) => add(`s${n}`, config))).toEqual(open.map((n) => `10.0.0.${n}`));
    expect(refusal(() => add("one more", config)).message).toContain(`0 of ${open.length} addresses free`);
  }
});

test("an exclusion does not move the turn", () => {
  const { add } = allocatorInMemory();
  add("a");
  add("b");
  expect(add("c", configOf({ subnet: "10.0.0.0/29", exclude: ["10.0.0.3", "10.0.0.4"] }))).toBe("10.0.0.5");
});
