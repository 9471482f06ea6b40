import { describe, expect, test } from "vitest";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { formatInterval, intervalsOf } from "../config/intervals.ts";
import type { Lease, LeaseState } from "../lease.ts";
import type { StoreSnapshot } from "../store/store-snapshot.ts";
import { Counter, kindOf, type Pool, poolOf, poolsOfStore, poolText, taken } from "./pools.ts";

const lease = (address: string, changes: Partial<Lease> & { readonly network?: string } = {}): Lease => ({
  owner: { network: changes.network ?? "blue", sandboxId: `of-${address}`, ifname: "eth0" },
  rangeSet: 0,
  address: parseCidr(address)!,
  state: "allocated",
  bootId: "",
  generation: 1,
  allocatedAtMs: 0,
  ...changes,
});

/** "network range [gateways]" of what a store with these marks and leases remembers. */
function remembered(marks: readonly string[], leases: readonly Lease[], network?: string): readonly string[] {
  const snapshot = {
    marks: () => new Map(marks.map((mark) => [mark, "x"])),
    leases: (name?: string) => leases.filter(({ owner }) => name === undefined || owner.network === name),
  } as unknown as StoreSnapshot;
  return poolsOfStore(snapshot, network).map(({ network: name, range, gateways, excluded, from }) => {
    expect([excluded, from]).toEqual([[], "store"]);
    return [name, range, ...gateways.map(formatInterval)].join(" ");
  });
}

describe("what the store remembers of ranges", () => {
  test.each<readonly [string, readonly string[], readonly Lease[], readonly string[]]>([
    ["nothing", [], [], []],
    ["one that gave an address", ["last blue 10.1.0.1-10.1.0.9"], [], ["blue 10.1.0.1-10.1.0.9"]],
    ["a set of two", ["last blue 10.1.0.1-10.1.0.9,fd00::1-fd00::9"], [], ["blue 10.1.0.1-10.1.0.9,fd00::1-fd00::9"]],
    [
      "two networks, by name",
      ["last red 10.2.0.1-10.2.0.9", "last blue 10.1.0.1-10.1.0.9"],
      [],
      ["blue 10.1.0.1-10.1.0.9", "red 10.2.0.1-10.2.0.9"],
    ],
    [
      "two sets, in their order",
      ["last blue 10.9.0.1-10.9.0.9", "last blue 10.1.0.1-10.1.0.9"],
      [],
      ["blue 10.9.0.1-10.9.0.9", "blue 10.1.0.1-10.1.0.9"],
    ],
    [
      "of an earlier and a later version the larger",
      ["last blue 10.1.0.1-10.1.0.9", "last blue 10.1.0.5-10.1.0.99", "last blue 10.2.0.1-10.2.0.2"],
      [],
      ["blue 10.1.0.5-10.1.0.99", "blue 10.2.0.1-10.2.0.2"],
    ],
    [
      "neither other marks nor what is no range",
      [
        "generation",
        "first blue 10.1.0.1-10.1.0.9",
        "last blue",
        "last blue 10.1.0.1-10.1.0.9 more",
        "last blue 10.1.0.9-10.1.0.1",
        "last blue 10.1.0.1-fd00::1",
        "last blue 10.1.0.1",
        "last blue x-10.1.0.9",
        "last blue 10.1.0.1-10.1.0.9,x",
      ],
      [],
      [],
    ],
    ["a range of one address", ["last blue 10.1.0.1-10.1.0.1"], [], ["blue 10.1.0.1-10.1.0.1"]],
    [
      "gateways of leases, and no more where they lie in a range",
      ["last blue 10.1.0.1-10.1.0.9"],
      [lease("10.1.0.1/24", { gateway: parseIp("10.1.0.254")! }), lease("10.1.0.9/24")],
      ["blue 10.1.0.1-10.1.0.9 10.1.0.254"],
    ],
    [
      "the subnets of all other leases, each once",
      ["last blue 10.1.0.1-10.1.0.9"],
      [lease("10.1.0.10/24"), lease("10.1.0.200/24"), lease("10.3.0.2/30"), lease("10.4.0.2/31"), lease("fd00::7/64")],
      [
        "blue 10.1.0.1-10.1.0.9",
        "blue 10.1.0.1-10.1.0.254",
        "blue 10.3.0.1-10.3.0.2",
        "blue 10.4.0.2-10.4.0.3",
        "blue fd00::1-fd00::ffff:ffff:ffff:ffff",
      ],
    ],
    [
      "a family apart",
      ["last blue ::a01:1-::a01:9"],
      [lease("10.1.0.2/30")],
      ["blue ::a01:1-::a01:9", "blue 10.1.0.1-10.1.0.2"],
    ],
  ])("%s", (_name, marks, leases, wanted) => {
    expect(remembered(marks, leases)).toEqual(wanted);
  });

  test("of one network where one is asked for", () => {
    const marks = ["last red 10.2.0.1-10.2.0.9", "last blue 10.1.0.1-10.1.0.9"];
    const leases = [lease("10.5.0.2/30", { network: "red" }), lease("10.6.0.2/30")];
    expect(remembered(marks, leases, "red")).toEqual(["red 10.2.0.1-10.2.0.9", "red 10.5.0.1-10.5.0.2"]);
  });
});

describe("a pool", () => {
  const run = (first: string, last = first) => ({ first: parseIp(first)!, last: parseIp(last)! });
  const pool: Pool = {
    network: "blue",
    range: "",
    windows: intervalsOf([run("10.1.0.1", "10.1.0.9"), run("10.1.1.1", "10.1.1.9")]),
    gateways: intervalsOf([run("10.1.0.1"), run("10.1.9.1")]),
    excluded: intervalsOf([run("10.1.0.1", "10.1.0.2"), run("10.1.1.9", "10.1.2.9")]),
    from: "configuration",
  };
  const kinds = (counter: Counter) => {
    const { tally, total } = counter;
    return [
      tally.allocated,
      tally.releasing,
      tally.cooling,
      tally.excluded,
      tally.gateway,
      tally.free,
      total,
      taken(tally),
    ].map(Number);
  };

  test("counts what lies in it, each address as one thing", () => {
    const counter = new Counter(pool);
    expect(kinds(counter)).toEqual([0, 0, 0, 2, 1, 15, 15, 0]);
    for (const [address, state] of [
      ["10.1.0.3", "allocated"],
      ["10.1.0.4", "releasing"],
      ["10.1.1.1", "cooling"],
    ] as const)
      counter.add(lease(`${address}/24`, { state }));
    expect(kinds(counter)).toEqual([1, 1, 1, 2, 1, 12, 15, 3]);
    // On what was reserved since.
    counter.add(lease("10.1.0.1/24"));
    counter.add(lease("10.1.0.2/24", { state: "cooling" }));
    expect(kinds(counter)).toEqual([2, 1, 2, 1, 0, 12, 15, 5]);
    expect(kinds(new Counter(pool, [run("10.1.1.8", "10.1.1.9")]))).toEqual([0, 0, 0, 1, 0, 1, 1, 0]);
  });

  test.each<readonly [string, LeaseState | undefined, string]>([
    ["10.1.0.1", undefined, "gateway"],
    ["10.1.0.2", undefined, "excluded"],
    ["10.1.0.3", undefined, "free"],
    ["10.1.0.1", "cooling", "cooling"],
  ])("has %s with the state %s as %s", (address, state, kind) => {
    expect(kindOf(pool, parseIp(address)!, state)).toBe(kind);
  });

  test("is found by network and address, and told with its windows", () => {
    const other = { ...pool, network: "red" };
    const find = (network: string, address: string) => poolOf([other, pool], network, parseIp(address)!);
    expect([
      find("blue", "10.1.1.1"),
      find("red", "10.1.0.9"),
      find("blue", "10.1.0.10"),
      find("green", "10.1.0.9"),
    ]).toEqual([pool, other, undefined, undefined]);
    expect(poolText(pool)).toBe("blue 10.1.0.1-10.1.0.9,10.1.1.1-10.1.1.9");
  });
});
