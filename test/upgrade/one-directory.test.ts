import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, executables, scratch } from "../conformance/plugin.ts";
import { ipamCall, mustSucceed, runCall } from "../ipam/ipam-call.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { describeWith } from "../support/requires.ts";
import { earlierExecutables } from "./earlier-release.ts";

/** While a node is upgraded, runtime and delegating plugins start one release or the other. */
describeWith("pipette-ipam of two releases on one data directory", ["linux", "earlier-release"], () => {
  let releases: readonly string[] = [];

  beforeAll(async () => {
    compileExecutables();
    releases = [await earlierExecutables("linux"), executables];
  });

  const allocator = (i: number) => ({ executable: join(releases[i % 2] ?? "", "pipette-ipam") });
  /** As many addresses as there are containers, in both families. */
  const confIn = (dataDir: string) => ({
    cniVersion: "1.1.0",
    name: "pt-two",
    ipam: {
      type: "pipette-ipam",
      dataDir,
      ranges: [[{ subnet: "10.79.0.0/24", rangeEnd: "10.79.0.41" }], [{ subnet: "fd79::/64", rangeEnd: "fd79::29" }]],
    },
  });
  const ids = Array.from({ length: 40 }, (_, i) => `c${i}`);

  test.each([0, 1])(
    "what one has written the other reads, in turn, whichever made the database (%i)",
    async (first) => {
      using data = scratch();
      const conf = confIn(data.path);
      for (let turn = 0; turn < 4; turn++) {
        const [one, other] = [allocator(first + turn), allocator(first + turn + 1)];
        const id = `turn${turn}`;
        const added = await mustSucceed(ipamCall("ADD", id, conf, one));
        expect(await mustSucceed(ipamCall("ADD", id, conf, other))).toEqual(added);
        await mustSucceed(ipamCall("CHECK", id, { ...conf, prevResult: { ...added, cniVersion: "1.1.0" } }, other));
        await mustSucceed(ipamCall("STATUS", id, conf, other));
        await mustSucceed(ipamCall("DEL", id, conf, other));
        expect((await leasesIn(data.path)).filter(({ state }) => state === "allocated")).toEqual([]);
        expect((await runCall(ipamCall("CHECK", id, { ...conf, prevResult: added }, one))).status).not.toBe(0);
        expect(brokenInvariants(`${data.path}/leases.db`)).toEqual([]);
      }
    },
  );

  test("both at once: none is lost, none is given twice, and either takes away what the other gave", async () => {
    using data = scratch();
    // Not there yet: both may be the first to make it.
    const conf = confIn(`${data.path}/new`);
    for (let round = 0; round < 2; round++) {
      const added = await Promise.all(ids.map((id, i) => mustSucceed(ipamCall("ADD", id, conf, allocator(i + round)))));
      const given = added.flatMap(({ ips = [] }) => ips.map(({ address }) => address));
      expect([given.length, new Set(given).size]).toEqual([2 * ids.length, 2 * ids.length]);
      const again = await Promise.all(ids.map((id, i) => mustSucceed(ipamCall("ADD", id, conf, allocator(i + 1)))));
      expect(again).toEqual(added);
      expect(brokenInvariants(`${data.path}/new/leases.db`)).toEqual([]);
      await Promise.all(ids.map((id, i) => mustSucceed(ipamCall("DEL", id, conf, allocator(i + round + 1)))));
      expect((await leasesIn(`${data.path}/new`)).filter(({ state }) => state === "allocated")).toEqual([]);
    }
    const gone = { ...conf, "cni.dev/valid-attachments": [] };
    await mustSucceed(ipamCall("ADD", "left", conf, allocator(0)));
    await mustSucceed(ipamCall("GC", "", gone, allocator(1)));
    expect((await leasesIn(`${data.path}/new`)).filter(({ state }) => state === "allocated")).toEqual([]);
  });
});
