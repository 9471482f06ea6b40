import { mkdirSync, readdirSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { startCommand } from "../support/cni-call.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { ipamCall, mustSucceed } from "./ipam-call.ts";

/** Process starts cost the run of all tests much: PIPETTE_CHURN=all makes 10,000 of them. */
const pods = process.env["PIPETTE_CHURN"] === "all" ? 5000 : 1000;
const atOnce = 64;

/** Exactly `atOnce` addresses: a pod finds one only if none is lost and none is kept longer than it must be. */
const confIn = (dataDir: string) => ({
  cniVersion: "1.1.0",
  name: "pt-churn",
  ipam: {
    type: "pipette-ipam",
    dataDir,
    ranges: [[{ subnet: "10.75.0.0/24", rangeStart: "10.75.0.2", rangeEnd: `10.75.0.${1 + atOnce}` }]],
  },
});

const worker = new URL("./churn-worker.ts", import.meta.url).pathname;

describe("exactly as many addresses as pods", () => {
  beforeAll(compileExecutables);

  test(`${pods} pods come and go by processes, ${atOnce} at once`, { timeout: 600_000 }, async () => {
    using data = scratch();
    const conf = confIn(data.path);
    const holders = new Map<string, string>();
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < pods) {
        const id = `p${next++}`;
        const { ips = [] } = await mustSucceed(ipamCall("ADD", id, conf));
        const address = ips.map((ip) => ip.address).join();
        expect(holders.get(address), `${address} of ${id}`).toBeUndefined();
        holders.set(address, id);
        // The same again while others come and go: nothing moves.
        if (next % 8 === 0) expect((await mustSucceed(ipamCall("ADD", id, conf))).ips).toEqual(ips);
        holders.delete(address);
        await mustSucceed(ipamCall("DEL", id, conf));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    expect((await leasesIn(data.path)).filter(({ state }) => state !== "cooling")).toEqual([]);
    expect(brokenInvariants(`${data.path}/leases.db`)).toEqual([]);
  });

  test("5,000 pods come and go by 16 processes with four handles each", async () => {
    using data = scratch();
    const claims = `${data.path}/claims`;
    mkdirSync(claims);
    const conf = confIn(`${data.path}/data`);
    const ended = await Promise.all(
      Array.from({ length: 16 }, (_, i) => {
        const args = [JSON.stringify(conf), claims, String(i), "4", String(Math.ceil(5000 / 16))];
        return startCommand([process.execPath, worker, ...args], {}, "").ended;
      }),
    );
    for (const { status, stderr } of ended) expect(status, stderr).toBe(0);
    expect(readdirSync(claims)).toEqual([]);
    expect((await leasesIn(`${data.path}/data`)).filter(({ state }) => state !== "cooling")).toEqual([]);
    expect(brokenInvariants(`${data.path}/data/leases.db`)).toEqual([]);
  });
});
