import { describe, expect, test } from "vitest";
import { bucketsOf } from "./call-buckets.ts";
import { addressesIn, cellOf } from "./cells.ts";
import { pairsOf } from "./peers.ts";
import { forecast } from "./pools.ts";
import { card, ringOf } from "./ring.ts";

test.each([1, 2, 3, 5, 8, 12])("of %i nodes in a ring none covers another, and all are in the picture", (count) => {
  const { width, height, places } = ringOf(count);
  expect(places).toHaveLength(count);
  for (const [i, { x, y }] of places.entries()) {
    expect(x - card.width / 2).toBeGreaterThanOrEqual(0);
    expect(x + card.width / 2).toBeLessThanOrEqual(width);
    expect(y - card.height / 2).toBeGreaterThanOrEqual(0);
    expect(y + card.height / 2).toBeLessThanOrEqual(height);
    for (const other of places.slice(i + 1))
      expect(Math.abs(x - other.x) >= card.width || Math.abs(y - other.y) >= card.height).toBe(true);
  }
});

describe("cells of a strip", () => {
  const single = { first: "10.0.0.0", last: "10.0.0.255", addressesPerCell: "1", cells: "" };
  const grouped = { first: "10.0.0.6", last: "10.0.0.21", addressesPerCell: "8", cells: "" };

  test.each([
    [single, 5, "10.0.0.5", "10.0.0.5"],
    [grouped, 0, "10.0.0.6", "10.0.0.7"],
    [grouped, 1, "10.0.0.8", "10.0.0.15"],
    [grouped, 2, "10.0.0.16", "10.0.0.21"],
  ])("%o: cell %i is %s to %s", (strip, cell, first, last) => {
    expect(addressesIn(strip, cell)).toEqual({ first, last });
    expect(cellOf(strip, first)).toBe(cell);
    expect(cellOf(strip, last)).toBe(cell);
  });

  test("what is no address of it is in none", () => {
    for (const text of ["10.0.1.0", "::1", "x", ""]) expect(cellOf(single, text)).toBeUndefined();
    expect(addressesIn(grouped, 3)).toBeUndefined();
    expect(addressesIn({ ...single, first: "<img>" }, 0)).toBeUndefined();
    expect(addressesIn({ ...single, addressesPerCell: "0" }, 0)).toBeUndefined();
  });
});

test("the pace of the last hour says when a pool is full", () => {
  const now = Date.parse("2026-11-23T12:00:00Z");
  const lease = {
    network: "pods",
    address: "10.0.0.2/24",
    state: "allocated",
    containerId: "c",
    ifname: "eth0",
  } as const;
  const at = (allocatedAt: string, releasedAt?: string) => ({
    ...lease,
    rangeSet: 0,
    generation: 1,
    allocatedAt,
    ...(releasedAt === undefined ? {} : { releasedAt }),
  });
  const pool = {
    ...{ network: "pods", range: "", gateways: [], total: "253", excluded: "3", strips: [] },
    ...{ allocated: 3, releasing: 0, cooling: 10, free: "20" },
  };
  const young = [at("2026-11-23T11:30:00Z"), at("2026-11-23T11:40:00Z"), at("2026-11-23T11:50:00Z")];
  expect(forecast(pool, young, now)).toEqual({ perHour: 3, fullInMs: 36_000_000 });
  expect(forecast(pool, [at("2026-11-23T10:00:00Z")], now)).toEqual({ perHour: 0 });
  expect(forecast(pool, [at("2026-11-23T10:00:00Z", "2026-11-23T11:59:00Z")], now)).toEqual({ perHour: -1 });
});

test("starts are counted by their time, from the fastest to the slowest that there were", () => {
  expect(bucketsOf([1_500, 1_900, 9_000, 5_001])).toEqual([
    { upToMicros: 2_000, count: 2 },
    { upToMicros: 5_000, count: 0 },
    { upToMicros: 10_000, count: 2 },
  ]);
  expect(bucketsOf([99_000_000]).map(({ count }) => count)).toEqual([1]);
});

test("a pair of nodes is as the first of them says, and unknown where it says nothing", () => {
  const peer = { self: false, addresses: [], subnets: [] };
  const document = {
    ...({ kind: "peers", version: 1, node: "a", registry: "", omitted: 0 } as const),
    peers: [{ ...peer, name: "b", state: "lost" }],
  };
  const pairs = pairsOf([{ node: "a", version: 1, atMs: 0, document }], ["a", "b", "c"]);
  expect(pairs.map(({ from, to, health }) => `${from}${to} ${health}`)).toEqual([
    "ab warn",
    "ac warn",
    "ba unknown",
    "bc unknown",
    "ca unknown",
    "cb unknown",
  ]);
});

describe("what probes say of the way to another node", () => {
  const peer = { name: "b", self: false, state: "ready", addresses: [], subnets: [], tunnelPort: 2 };
  const probe = { address: "10.20.2.1", state: "reachable", failures: 0 } as const;
  const pairWith = (...probes: readonly object[]) => {
    const document = { kind: "peers", version: 1, node: "a", registry: "r", omitted: 0, peers: [{ ...peer, probes }] };
    const all = [{ node: "a", version: 1, atMs: 1, document }] as never;
    return pairsOf(all, ["a", "b"])[0];
  };

  test.each([
    ["none yet", [{ ...probe, state: "unknown" }], { health: "good", word: "ready, by tunnel" }],
    ["an answer", [{ ...probe, rttMicros: 420 }], { health: "good", word: "ready, by tunnel, 420 µs", rttMicros: 420 }],
    [
      "two families, the slower counts",
      [
        { ...probe, rttMicros: 420 },
        { ...probe, rttMicros: 2500 },
      ],
      { health: "good", word: "ready, by tunnel, 2.50 ms", rttMicros: 2500 },
    ],
    [
      "one family lost",
      [
        { ...probe, rttMicros: 420 },
        { ...probe, address: "fd00::1", state: "lost", reason: "nothing comes back" },
      ],
      { health: "bad", word: "fd00::1 answers no more: nothing comes back" },
    ],
    ["never one", [{ ...probe, state: "silent" }], { health: "bad", word: "10.20.2.1 has never answered" }],
    [
      "large packets lost",
      [{ ...probe, rttMicros: 420, mtu: 1400 }],
      { health: "warn", word: "packets of more than 1400 bytes are lost on the way", rttMicros: 420 },
    ],
  ])("%s", (_, probes, wanted) => {
    expect(pairWith(...probes)).toMatchObject(wanted);
  });
});
