import { describe, expect, test } from "vitest";
import { formatIp, type Ip, ipOf, parseIp } from "../../shared/net/ip.ts";
import { random } from "../../test/support/random.ts";
import {
  countOf,
  formatInterval,
  type Interval,
  intervalAt,
  intervalsOf,
  overlap,
  pastIntervals,
  without,
} from "./intervals.ts";

const ip = (text: string): Ip => parseIp(text)!;
/** `a` or `a-b`. */
const run = (text: string): Interval => {
  const [first = "", last = first] = text.split("-");
  return { first: ip(first), last: ip(last) };
};
const joined = (...texts: string[]): readonly string[] => intervalsOf(texts.map(run)).map(formatInterval);

const highest6 = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";

describe("runs of addresses", () => {
  test.each([
    [[], []],
    [["10.0.0.5"], ["10.0.0.5"]],
    [["10.0.0.7", "10.0.0.5", "10.0.0.6"], ["10.0.0.5-10.0.0.7"]],
    [
      ["10.0.0.7", "10.0.0.5"],
      ["10.0.0.5", "10.0.0.7"],
    ],
    [["10.0.0.0-10.0.0.9", "10.0.0.3-10.0.0.5", "10.0.0.9-10.0.0.12"], ["10.0.0.0-10.0.0.12"]],
    [
      ["fd00::1", "10.0.0.1"],
      ["10.0.0.1", "fd00::1"],
    ],
    // The end of one family does not touch the beginning of the other.
    [
      ["255.255.255.255", "::", `${highest6}`],
      ["255.255.255.255", "::", highest6],
    ],
  ])("%j are joined to %j", (texts, wanted) => {
    expect(joined(...texts)).toEqual(wanted);
  });

  test.each([
    ["10.0.0.1-10.0.0.9", [], ["10.0.0.1-10.0.0.9"]],
    ["10.0.0.1-10.0.0.9", ["10.0.0.0-10.0.0.9"], []],
    [
      "10.0.0.1-10.0.0.9",
      ["10.0.0.0-10.0.0.1", "10.0.0.4", "10.0.0.9-10.0.0.20"],
      ["10.0.0.2-10.0.0.3", "10.0.0.5-10.0.0.8"],
    ],
    ["10.0.0.1-10.0.0.9", ["9.0.0.0-9.255.255.255", "10.0.0.10", "fd00::5"], ["10.0.0.1-10.0.0.9"]],
    [`fd00::-${highest6}`, ["10.0.0.4", `fd01::-${highest6}`], ["fd00::-fd00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]],
  ])("%s without %j leaves %j", (window, texts, wanted) => {
    expect(without(run(window), intervalsOf(texts.map(run))).map(formatInterval)).toEqual(wanted);
  });

  test("past a run is the address behind it, beyond the last of all too", () => {
    const runs = intervalsOf(["10.0.0.3-10.0.0.5", highest6].map(run));
    expect(formatIp(pastIntervals(runs, ip("10.0.0.3")))).toBe("10.0.0.6");
    expect(formatIp(pastIntervals(runs, ip("10.0.0.2")))).toBe("10.0.0.2");
    expect(pastIntervals(runs, ip(highest6)).value).toBe(1n << 128n);
  });

  test("agree with a plain search over single addresses, through random runs", () => {
    const next = random(7);
    const at = (n: number): Ip => ipOf(4, BigInt(n));
    for (let round = 0; round < 300; round++) {
      const runs = Array.from({ length: next(8) }, () => {
        const first = next(50);
        return { first: at(first), last: at(first + next(6)) };
      });
      const covered = (n: number): boolean => runs.some(({ first, last }) => first.value <= n && n <= last.value);
      const intervals = intervalsOf(runs);
      const [low, high] = [next(30), 30 + next(30)];
      const left = without({ first: at(low), last: at(high) }, intervals);
      for (let n = 0; n < 60; n++) {
        expect(intervalAt(intervals, at(n)) !== undefined).toBe(covered(n));
        expect(intervalAt(left, at(n)) !== undefined).toBe(n >= low && n <= high && !covered(n));
        let free = n;
        while (covered(free)) free++;
        expect(Number(pastIntervals(intervals, at(n)).value)).toBe(free);
      }
      const open = Array.from({ length: high - low + 1 }, (_, i) => low + i).filter((n) => !covered(n));
      expect(Number(countOf(left))).toBe(open.length);
    }
  });
});

test.each([
  ["10.0.0.1-10.0.0.5", "10.0.0.5-10.0.0.9", true],
  ["10.0.0.1-10.0.0.4", "10.0.0.5-10.0.0.9", false],
  ["10.0.0.1-10.0.0.9", "10.0.0.4", true],
  ["10.0.0.1", "10.0.0.1", true],
  ["10.0.0.1-10.0.0.9", "::a00:4", false],
])("%s and %s have addresses in common: %s", (a, b, wanted) => {
  expect([overlap(run(a), run(b)), overlap(run(b), run(a))]).toEqual([wanted, wanted]);
});
