import { describe, expect, test } from "vitest";
import { parseIp } from "../../shared/net/ip.ts";
import { intervalsOf } from "../config/intervals.ts";
import type { Lease } from "../lease.ts";
import { numberOf } from "../store/address-key.ts";
import type { StoreSnapshot } from "../store/store-snapshot.ts";
import type { FindingCode } from "./finding.ts";
import { type CheckContext, LeaseChecker, leaseChecks } from "./lease-checks.ts";
import { checkTakenRuns } from "./taken-runs.ts";

const ip = (text: string) => parseIp(text)!;
const run = (first: string, last = first) => ({ first: ip(first), last: ip(last) });
const minute = 60_000;
const now = 100 * minute;

const context: CheckContext = {
  nowMs: now,
  bootId: "this",
  generation: 9,
  ranges: {
    network: "blue",
    windows: intervalsOf([run("10.1.0.2", "10.1.0.9")]),
    reserved: intervalsOf([run("10.1.0.5")]),
  },
};
const lease: Lease = {
  owner: { network: "blue", sandboxId: "s1", ifname: "eth0" },
  rangeSet: 0,
  address: { ip: ip("10.1.0.2"), prefix: 24 },
  gateway: ip("10.1.0.1"),
  state: "allocated",
  bootId: "this",
  generation: 9,
  allocatedAtMs: now,
};
const at = (text: string, prefix = 24) => ({ address: { ip: ip(text), prefix } });
const owner = (change: object) => ({ owner: { ...lease.owner, ...change } });
const { ranges: _, ...withoutRanges } = context;

type Case = readonly [what: string, lease: Partial<Lease>, context?: CheckContext];
/** What is found, each with the nearest that is not. */
const cases: Readonly<
  Partial<Record<FindingCode, { readonly found: readonly Case[]; readonly not: readonly Case[] }>>
> = {
  "generation-behind": {
    found: [
      ["above the count", { generation: 10 }],
      ["below the first", { generation: 0 }],
    ],
    not: [["the first", { generation: 1 }]],
  },
  "gateway-given": {
    found: [["its own gateway", at("10.1.0.1")]],
    not: [
      ["cooling", { ...at("10.1.0.1"), state: "cooling" }],
      ["another's", at("10.1.0.3")],
    ],
  },
  "wrong-name": {
    found: [
      ["a sandbox", owner({ sandboxId: "a b" })],
      ["a network", owner({ network: "a b" })],
      ["an interface", owner({ ifname: "a/b" })],
    ],
    not: [["no interface, as in host-local's oldest format", owner({ ifname: "" })]],
  },
  "wrong-prefix": {
    found: [
      ["too long for IPv4", at("10.1.0.2", 33)],
      ["too long for IPv6", at("fd00::2", 129)],
      ["negative", at("10.1.0.2", -1)],
    ],
    not: [
      ["one address", at("10.1.0.2", 32)],
      ["one address of IPv6", at("fd00::2", 128)],
      ["everything", at("10.1.0.2", 0)],
    ],
  },
  "time-ahead": {
    found: [
      ["given in two minutes", { allocatedAtMs: now + minute + 1 }],
      ["released in two minutes", { state: "cooling", releasedAtMs: now + minute + 1 }],
    ],
    not: [["given in a minute", { allocatedAtMs: now + minute }]],
  },
  "earlier-boot": {
    found: [["another boot", { bootId: "other" }]],
    not: [
      ["this boot", {}],
      ["an unknown boot", { bootId: "" }],
      ["this boot unknown", { bootId: "other" }, { ...context, bootId: "" }],
      ["released", { bootId: "other", state: "cooling" }],
    ],
  },
  "long-releasing": {
    found: [
      ["eleven minutes", { state: "releasing", releasedAtMs: now - 10 * minute - 1 }],
      ["since no time", { state: "releasing" }],
    ],
    not: [
      ["ten minutes", { state: "releasing", releasedAtMs: now - 10 * minute }],
      ["cooling", { state: "cooling", releasedAtMs: 0 }],
    ],
  },
  "outside-ranges": {
    found: [["an address in no range", at("10.1.0.10")]],
    not: [
      ["the last of the range", at("10.1.0.9")],
      ["another network's", { ...at("10.1.0.10"), ...owner({ network: "red" }) }],
      ["without a configuration", at("10.1.0.10"), withoutRanges],
    ],
  },
  "reserved-address": {
    found: [
      ["a reserved address", at("10.1.0.5")],
      ["one that is being released", { ...at("10.1.0.5"), state: "releasing", releasedAtMs: now }],
    ],
    not: [
      ["cooling", { ...at("10.1.0.5"), state: "cooling" }],
      ["another network's", { ...at("10.1.0.5"), ...owner({ network: "red" }) }],
      ["without a configuration", at("10.1.0.5"), withoutRanges],
      ["the one beside it", at("10.1.0.6")],
    ],
  },
};

describe.each(leaseChecks.map((check) => [check.code, check] as const))("%s", (code, check) => {
  test.each([
    ...(cases[code]?.found ?? []).map((one) => [...one.slice(0, 2), one[2] ?? context, true] as const),
    ...(cases[code]?.not ?? []).map((one) => [...one.slice(0, 2), one[2] ?? context, false] as const),
  ])("%s", (_what, change, of, wanted) => {
    const codes = leaseChecks.filter(({ applies }) => applies({ ...lease, ...(change as object) }, of as CheckContext));
    expect(codes.includes(check)).toBe(wanted);
  });
});

test("leases alike are one finding for each network, with the first three", () => {
  const checker = new LeaseChecker(context);
  checker.look(lease);
  for (let i = 2; i <= 6; i++)
    checker.look({ ...lease, ...at(`10.1.0.${i}`), bootId: "other", gateway: ip("10.1.0.1") });
  checker.look({ ...lease, ...owner({ network: "red" }), bootId: "other" });
  const told = checker.findings().map(({ code, what, severity, repairable }) => [code, severity, repairable, what]);
  expect(told).toEqual([
    [
      "earlier-boot",
      "note",
      undefined,
      '5 leases of network "blue" allocated before the last boot: "10.1.0.2", "10.1.0.3", "10.1.0.4" and 2 more',
    ],
    ["reserved-address", "note", undefined, expect.stringContaining('1 lease of network "blue" on addresses')],
    ["earlier-boot", "note", undefined, '1 lease of network "red" allocated before the last boot: "10.1.0.2"'],
  ]);
  expect([...checker.networks]).toEqual(["blue", "red"]);
});

describe("what is noted as taken", () => {
  type Run = readonly [network: string, first: string, last: string];
  const taken = (...runs: readonly Run[]) =>
    runs.map(([network, first, last]) => ({ network, first: numberOf(ip(first)), last: numberOf(ip(last)) }));
  const held = (network: string, ...addresses: readonly string[]) =>
    addresses.map((address) => ({ ...lease, ...owner({ network }), ...at(address) }));
  const check = (leases: readonly Lease[], runs: readonly Run[], most = 9) =>
    checkTakenRuns({ runs: () => taken(...runs).values() } as unknown as StoreSnapshot, leases, most).map(
      ({ code, network, what, severity, repairable }) => {
        expect([severity, repairable]).toEqual(["error", true]);
        return `${code} ${network}: ${what}`;
      },
    );
  const [two, three, nine] = ["10.1.0.2", "10.1.0.3", "10.1.0.9"];
  const missing = (network: string, what: string) =>
    `taken-run-missing ${network}: ${what} has leases and is not noted as taken`;
  const empty = (network: string, what: string) =>
    `taken-run-empty ${network}: ${what} is noted as taken as a run of its own, which the leases do not say`;

  test.each<readonly [string, readonly Lease[], readonly Run[], readonly string[]]>([
    ["nothing", [], [], []],
    [
      "what has leases",
      held("blue", two, three, nine),
      [
        ["blue", two, three],
        ["blue", nine, nine],
      ],
      [],
    ],
    ["not what has leases", held("blue", two), [], [missing("blue", '"10.1.0.2"')]],
    ["what has none", [], [["blue", two, three]], [empty("blue", '"10.1.0.2-10.1.0.3"')]],
    [
      "more than has leases",
      held("blue", two),
      [["blue", two, three]],
      ['taken-run-split blue: "10.1.0.2" has leases, and "10.1.0.2-10.1.0.3" is noted as taken'],
    ],
    [
      "another address",
      held("blue", three),
      [["blue", two, two]],
      [empty("blue", '"10.1.0.2"'), missing("blue", '"10.1.0.3"')],
    ],
    [
      "another network",
      held("blue", two),
      [["red", two, two]],
      [missing("blue", '"10.1.0.2"'), empty("red", '"10.1.0.2"')],
    ],
    [
      "an earlier network",
      held("red", two),
      [["blue", nine, nine]],
      [empty("blue", '"10.1.0.9"'), missing("red", '"10.1.0.2"')],
    ],
    ["less at the end", held("blue", two, nine), [["blue", two, two]], [missing("blue", '"10.1.0.9"')]],
  ])("is %s", (_name, leases, runs, wanted) => {
    expect(check(leases, runs)).toEqual(wanted);
  });

  test("is told of as often as asked, and read to the end", () => {
    const many = ["10.1.0.2", "10.1.0.4", "10.1.0.6", "10.1.0.8"];
    let read = 0;
    function* all() {
      for (const each of held("blue", ...many)) {
        read++;
        yield each;
      }
    }
    const none = { runs: () => [].values() } as unknown as StoreSnapshot;
    expect([checkTakenRuns(none, all(), 2).length, read]).toEqual([2, 4]);
    const noted = many.map((address): Run => ["blue", address, address]);
    expect(check([], noted, 3)).toHaveLength(3);
    const longer = many.map((address, i): Run => ["blue", address, `10.1.0.${2 * i + 3}`]);
    expect(check(held("blue", ...many), longer, 1)).toHaveLength(1);
  });
});
