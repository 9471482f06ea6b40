import { beforeAll, describe, expect, test } from "vitest";
import { leasesIn } from "../../conformance/leases.ts";
import { compileExecutables, scratch } from "../../conformance/plugin.ts";
import { ipamCall, mustSucceed, runCall } from "../../ipam/ipam-call.ts";
import { startCommand } from "../../support/cni-call.ts";
import { brokenInvariants } from "../../support/invariants.ts";

beforeAll(compileExecutables);

const confIn = (dataDir: string, ranges: unknown, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "pt-lessons",
  ipam: { type: "pipette-ipam", dataDir, ranges, ...more },
});

describe("peers 16: an allocation ends, wherever the last one was and however full the ranges are", () => {
  /** Two or more ranges in one set, two addresses in each; the last one has the family's very last addresses. */
  const sets: Readonly<Record<string, readonly object[]>> = {
    IPv4: [
      { subnet: "10.74.0.0/29", rangeStart: "10.74.0.2", rangeEnd: "10.74.0.3" },
      { subnet: "10.74.1.0/29", rangeStart: "10.74.1.5", rangeEnd: "10.74.1.6" },
      {
        subnet: "255.255.255.252/30",
        rangeStart: "255.255.255.254",
        rangeEnd: "255.255.255.255",
        gateway: "10.74.0.1",
      },
    ],
    IPv6: [
      { subnet: "fd74::/124", rangeStart: "fd74::e", rangeEnd: "fd74::f" },
      {
        subnet: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc/126",
        rangeStart: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe",
        gateway: "fd74::1",
      },
    ],
  };

  test.each(Object.keys(sets))("%s", async (family) => {
    using data = scratch();
    const conf = confIn(data.path, [sets[family]], { cooldownMs: 0 });
    const size = 2 * (sets[family]?.length ?? 0);
    const held: string[] = [];
    for (let i = 0; i < size; i++) {
      const { ips = [] } = await mustSucceed(ipamCall("ADD", `first-${i}`, conf));
      held.push(ips[0]?.address ?? "");
    }
    expect(new Set(held).size).toBe(size);
    // The cursor comes to stand on each address in turn, each time in a full set.
    for (let i = 0; i < size; i++) {
      const refused = await runCall(ipamCall("ADD", "one-too-many", conf));
      expect(JSON.parse(refused.stdout)).toMatchObject({ code: 101 });
      await mustSucceed(ipamCall("DEL", `first-${i}`, conf));
      const { ips = [] } = await mustSucceed(ipamCall("ADD", `next-${i}`, conf));
      expect(ips[0]?.address).toBe(held[i]);
    }
  });
});

const worker = new URL("./many-networks-worker.ts", import.meta.url).pathname;

describe("peers 17: many containers in many networks on one database", () => {
  // By eight processes at once. None may fail: one that waits longer than the store's bound does.
  test.each([
    [1_000, 20],
    [10_000, 100],
  ])(
    "%i containers in %i networks: none is doubled, none starves, each is found again by its id",
    async (containers, networks) => {
      using data = scratch();
      const processes = 8;
      const args = (i: number): readonly string[] => [
        data.path,
        String(i),
        String(containers / processes),
        String(networks),
      ];
      const ended = await Promise.all(
        Array.from({ length: processes }, (_, i) => startCommand([process.execPath, worker, ...args(i)], {}, "").ended),
      );
      for (const { status, stderr } of ended) expect(status, stderr).toBe(0);
      const given = ended.flatMap(({ stdout }) => stdout.trim().split("\n"));
      expect(new Set(given).size).toBe(containers);
      const left = await leasesIn(data.path);
      expect(left.filter(({ state }) => state === "allocated")).toHaveLength(
        processes * Math.ceil(containers / processes / 2),
      );
      expect(brokenInvariants(`${data.path}/leases.db`)).toEqual([]);
    },
    120_000,
  );
});

test("peers 19: the same container and interface get the same address again, also where they ask for it", async () => {
  using data = scratch();
  const ranges = [[{ subnet: "10.73.0.0/29" }]];
  const conf = confIn(data.path, ranges);
  const asking = { ...confIn(data.path, ranges), args: { cni: { ips: ["10.73.0.4"] } } };
  const { ips } = await mustSucceed(ipamCall("ADD", "static", asking));
  expect(ips?.[0]?.address).toBe("10.73.0.4/29");
  expect((await mustSucceed(ipamCall("ADD", "static", asking))).ips).toEqual(ips);
  expect((await mustSucceed(ipamCall("ADD", "static", conf))).ips).toEqual(ips);
  // A stop and a start of it, as podman does: at once, without any cooling in the way.
  await mustSucceed(ipamCall("DEL", "static", asking));
  expect((await mustSucceed(ipamCall("ADD", "static", asking))).ips).toEqual(ips);
  await mustSucceed(ipamCall("DEL", "static", asking));
  // And so does another container that is told to have it.
  expect((await mustSucceed(ipamCall("ADD", "successor", asking))).ips).toEqual(ips);
});
