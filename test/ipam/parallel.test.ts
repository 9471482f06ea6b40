import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { ipamCall, mustSucceed, runCall } from "./ipam-call.ts";

const ids = Array.from({ length: 32 }, (_, i) => `c${i}`);

describe("32 processes at once on one pool", () => {
  beforeAll(compileExecutables);

  /** 34 usable addresses and the gateway's, in a database that does not exist yet. */
  const confIn = (dataDir: string, more: object = {}) => ({
    cniVersion: "1.1.0",
    name: "pt-crowd",
    ipam: {
      type: "pipette-ipam",
      dataDir,
      ranges: [[{ subnet: "10.78.0.0/24", rangeEnd: "10.78.0.35" }], [{ subnet: "fd78::/64" }]],
    },
    ...more,
  });

  test("each gets its own, nothing is lost, also where all of them leave while others come", async () => {
    using data = scratch();
    const conf = confIn(`${data.path}/new`);
    const added = await Promise.all(ids.map((id) => mustSucceed(ipamCall("ADD", id, conf))));
    const given = added.map(({ ips }) => ips!.map((ip) => ip.address).join(" "));
    expect(new Set(given).size).toBe(ids.length);
    const listed = await leasesIn(`${data.path}/new`);
    expect(listed).toHaveLength(2 * ids.length);
    for (const [i, id] of ids.entries()) {
      const own = listed.filter((lease) => lease.containerId === id).map((lease) => lease.address);
      expect(own.join(" ")).toBe(given[i]);
    }

    // Sixteen leave, sixteen stay and ask again; sixteen come, for whom only cooling addresses are left but two.
    const calls = ids.flatMap((id, i) =>
      i % 2 === 0 ? [ipamCall("DEL", id, conf)] : [ipamCall("ADD", id, conf), ipamCall("ADD", `new${i}`, conf)],
    );
    const ended = await Promise.all(calls.map((call) => runCall(call)));
    const states = await leasesIn(`${data.path}/new`);
    const allocated = states.filter((lease) => lease.state === "allocated");
    expect(new Set(allocated.map((lease) => lease.address)).size).toBe(allocated.length);
    for (const [i, { status, stdout }] of ended.entries()) {
      const { CNI_COMMAND: verb, CNI_CONTAINERID: id } = calls[i]!.env;
      // Whoever came before enough had left was refused, with the reason.
      if (status !== 0)
        expect([verb, id?.slice(0, 3), JSON.parse(stdout).msg]).toEqual([
          "ADD",
          "new",
          expect.stringContaining("0 of 34 addresses free"),
        ]);
      else if (verb === "ADD") expect(allocated.filter((lease) => lease.containerId === id)).toHaveLength(2);
    }
    for (const [i, id] of ids.entries()) {
      const own = allocated.filter((lease) => lease.containerId === id).map((lease) => lease.address);
      expect(own.join(" ")).toBe(i % 2 === 0 ? "" : given[i]);
    }
    expect(readdirSync(`${data.path}/new`).filter((name) => !name.startsWith("leases.db"))).toEqual([]);
  });

  test("the same request from all of them gets one answer", async () => {
    using data = scratch();
    const conf = confIn(data.path);
    const answers = await Promise.all(ids.map(() => runCall(ipamCall("ADD", "same", conf))));
    expect(new Set(answers.map(({ stdout }) => stdout)).size).toBe(1);
    expect(await leasesIn(data.path)).toHaveLength(2);
  });

  test("one address for all of them is given once", async () => {
    using data = scratch();
    const conf = confIn(data.path, { runtimeConfig: { ips: ["10.78.0.20"] } });
    const ended = await Promise.all(ids.map((id) => runCall(ipamCall("ADD", id, conf))));
    expect(ended.filter(({ status }) => status === 0)).toHaveLength(1);
    for (const { status, stdout } of ended)
      if (status !== 0)
        expect(JSON.parse(stdout).msg).toContain('the requested address is taken: "10.78.0.20", allocated');
    expect(await leasesIn(data.path)).toHaveLength(2);
  });
});
