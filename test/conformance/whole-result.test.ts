import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { leasesIn } from "./leases.ts";
import { compileExecutables, errorOf, resultOf, run, variables } from "./plugin.ts";
import { type RealAgent, startRealAgent } from "./real-agent.ts";

/** Plugin, agent and kernel together: what a runtime gets, in each version's exact shape. */
describeWith("with the real agent", ["root", "cni-plugins"], () => {
  let agent: RealAgent;
  beforeAll(async () => {
    compileExecutables();
    agent = await startRealAgent();
  });
  afterAll(() => agent?.[Symbol.asyncDispose]());

  const mac = expect.stringMatching(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
  const interfaces = (netns: string, more: object) => [
    { name: "ptcf0", mac },
    { name: expect.stringMatching(/^.{1,15}$/), mac },
    { name: "eth0", mac, sandbox: netns, ...more },
  ];
  const v4 = { address: expect.stringMatching(/^10\.66\.0\.\d+\/24$/), gateway: "10.66.0.1" };
  const v6 = { address: expect.stringMatching(/^fd00:66::[0-9a-f]+\/64$/), gateway: "fd00:66::1" };

  const legacy = (cniVersion: string) => () => ({
    cniVersion,
    ip4: { ip: v4.address, gateway: v4.gateway },
    ip6: { ip: v6.address, gateway: v6.gateway },
    dns: {},
  });
  const middle = (cniVersion: string) => (netns: string) => ({
    cniVersion,
    interfaces: interfaces(netns, {}),
    ips: [
      { version: "4", interface: 2, ...v4 },
      { version: "6", interface: 2, ...v6 },
    ],
    dns: {},
  });
  const ips = [
    { interface: 2, ...v4 },
    { interface: 2, ...v6 },
  ];
  const golden: Readonly<Record<string, (netns: string) => object>> = {
    "0.1.0": legacy("0.1.0"),
    "0.2.0": legacy("0.2.0"),
    "0.3.0": middle("0.3.0"),
    "0.3.1": middle("0.3.1"),
    "0.4.0": middle("0.4.0"),
    "1.0.0": (netns) => ({ cniVersion: "1.0.0", interfaces: interfaces(netns, {}), ips }),
    "1.1.0": (netns) => ({ cniVersion: "1.1.0", interfaces: interfaces(netns, { mtu: 1500 }), ips }),
  };

  test.each(Object.entries(golden))(
    "section 5 Success: version %s has its own shape, twice the same, and DEL ends it",
    async (cniVersion, wanted) => {
      const netns = agent.addPod();
      const env = { CNI_CONTAINERID: `c${cniVersion}`, CNI_NETNS: netns };
      const stdin = { ...agent.conf, cniVersion };
      const linksBefore = agent.links().length;
      const ended = await run({ env: variables("ADD", env), stdin });
      expect(resultOf(ended)).toEqual(wanted(netns));
      expect((await run({ env: variables("ADD", env), stdin })).stdout).toBe(ended.stdout);
      if (["0.4.0", "1.0.0", "1.1.0"].includes(cniVersion)) {
        const prevResult = resultOf(ended);
        const checked = await run({ env: variables("CHECK", env), stdin: { ...stdin, prevResult } });
        expect([checked.status, checked.stdout, checked.stderr]).toEqual([0, "", ""]);
      }
      expect(agent.links().length).toBeGreaterThan(linksBefore);
      for (let i = 0; i < 2; i++) {
        const deleted = await run({ env: variables("DEL", env), stdin });
        expect([deleted.status, deleted.stdout, deleted.stderr]).toEqual([0, "", ""]);
      }
      const states = (await leasesIn(agent.dataDir)).filter(({ containerId }) => containerId === env.CNI_CONTAINERID);
      expect(states.map(({ state }) => state)).toEqual(["cooling", "cooling"]);
    },
  );

  test("section 2 ADD: a namespace that is not there is an error before anything is made, and its addresses cool", async () => {
    const env = { CNI_CONTAINERID: "nowhere", CNI_NETNS: "/run/netns/pt-cf-not-there" };
    const failed = errorOf(await run({ env: variables("ADD", env), stdin: { ...agent.conf, cniVersion: "1.1.0" } }));
    expect(failed).toMatchObject({ code: 4, msg: expect.stringContaining(env.CNI_NETNS) });
    const states = (await leasesIn(agent.dataDir)).filter(({ containerId }) => containerId === "nowhere");
    expect(states.map(({ state }) => state)).toEqual(["cooling", "cooling"]);
  });

  test("section 2 CHECK: names the address that is gone from the interface", async () => {
    const netns = agent.addPod();
    const env = { CNI_CONTAINERID: "check", CNI_NETNS: netns };
    const stdin = { ...agent.conf, cniVersion: "1.1.0" };
    const prevResult = resultOf(await run({ env: variables("ADD", env), stdin }));
    const name = netns.slice(netns.lastIndexOf("/") + 1);
    expect(spawnSync("ip", ["-n", name, "-4", "addr", "flush", "dev", "eth0"]).status).toBe(0);
    const failed = errorOf(await run({ env: variables("CHECK", env), stdin: { ...stdin, prevResult } }));
    expect(failed).toMatchObject({ code: 103, msg: expect.stringContaining("10.66.0.") });
    expect((await run({ env: variables("DEL", env), stdin })).status).toBe(0);
  });

  test("section 2 CHECK: fails where the address is no longer leased, or another one is", async () => {
    const env = { CNI_CONTAINERID: "unleased", CNI_NETNS: agent.addPod() };
    const stdin = { ...agent.conf, cniVersion: "1.1.0" };
    const prevResult = resultOf(await run({ env: variables("ADD", env), stdin })) as { ips: { address: string }[] };
    const [{ address }] = prevResult.ips as [{ address: string }];
    const other = { ...prevResult, ips: [{ address: "10.66.0.77/24" }] };
    const differs = errorOf(await run({ env: variables("CHECK", env), stdin: { ...stdin, prevResult: other } }));
    expect(differs).toMatchObject({ code: 103, msg: expect.stringContaining(address.replace("/24", "")) });
    resultOf(await run({ env: variables("DEL", env), stdin }));
    const gone = errorOf(await run({ env: variables("CHECK", env), stdin: { ...stdin, prevResult } }));
    expect(gone).toMatchObject({ code: 103, msg: expect.stringContaining(address) });
  });

  test("section 2 STATUS and GC: the network works, and what the runtime does not list goes", async () => {
    const env = { CNI_CONTAINERID: "stale", CNI_NETNS: agent.addPod() };
    const stdin = { ...agent.conf, cniVersion: "1.1.0" };
    const status = await run({ env: { CNI_COMMAND: "STATUS" }, stdin });
    expect([status.status, status.stdout]).toEqual([0, ""]);
    resultOf(await run({ env: variables("ADD", env), stdin }));
    const gc = { env: variables("GC"), stdin: { ...stdin, "cni.dev/valid-attachments": [] } };
    expect((await run(gc)).status).toBe(0);
    const leases = await leasesIn(agent.dataDir);
    expect(leases.filter(({ state }) => state !== "cooling")).toEqual([]);
  });

  test("section 4 Plugin Delegation: addresses that another IPAM plugin keeps are wired and given up the same way", async () => {
    const env = { CNI_CONTAINERID: "static", CNI_NETNS: agent.addPod() };
    const ipam = { type: "static", addresses: [{ address: "10.66.0.200/24", gateway: "10.66.0.1" }] };
    const stdin = { ...agent.conf, cniVersion: "1.0.0", ipam };
    const prevResult = resultOf(await run({ env: variables("ADD", env), stdin }));
    expect(prevResult).toMatchObject({ ips: [{ address: "10.66.0.200/24", interface: 2 }] });
    expect((await run({ env: variables("CHECK", env), stdin: { ...stdin, prevResult } })).status).toBe(0);
    const deleted = await run({ env: variables("DEL", env), stdin: { ...stdin, prevResult } });
    expect([deleted.status, deleted.stderr]).toEqual([0, ""]);
  });

  test("an ADD after the chain's first plugin passes on what came before", async () => {
    const netns = agent.addPod();
    const env = { CNI_CONTAINERID: "second", CNI_NETNS: netns };
    const before = {
      interfaces: [{ name: "tun0", sandbox: netns }],
      ips: [{ address: "192.0.2.9/24", interface: 0 }],
    };
    const stdin = { ...agent.conf, cniVersion: "1.1.0", prevResult: { cniVersion: "1.1.0", ...before } };
    const added = resultOf(await run({ env: variables("ADD", env), stdin }));
    expect(added).toMatchObject({ ips: [{ interface: 0 }, { interface: 3 }, { interface: 3 }] });
    const checked = await run({ env: variables("CHECK", env), stdin: { ...stdin, prevResult: added } });
    expect([checked.status, checked.stdout]).toEqual([0, ""]);
    expect((await run({ env: variables("DEL", env), stdin })).status).toBe(0);
  });

  test("without an ipam section the agent gives the addresses", async () => {
    const { ipam: _, ...conf } = agent.conf;
    const env = { CNI_CONTAINERID: "agents", CNI_NETNS: agent.addPod() };
    const stdin = { ...conf, cniVersion: "1.1.0" };
    const added = resultOf(await run({ env: variables("ADD", env), stdin }));
    expect(added).toMatchObject({ ips: [v4, v6] });
    expect((await run({ env: variables("DEL", env), stdin })).status).toBe(0);
    const states = (await leasesIn(agent.dataDir)).filter(({ containerId }) => containerId === "agents");
    expect(states.map(({ state }) => state)).toEqual(["cooling", "cooling"]);
  });
});
