import { beforeAll, describe, expect, test } from "vitest";
import { leasesIn } from "./leases.ts";
import { compileExecutables, errorOf, kill, resultOf, run, scratch, start, variables } from "./plugin.ts";
import { obliging, obligingButAnswering, startScriptedAgent } from "./scripted-agent.ts";

beforeAll(compileExecutables);

const confOf = (socket: string, path: string, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "n",
  type: "pipette",
  socket,
  dataDir: path,
  ipam: { type: "pipette-ipam", dataDir: path, ranges: [[{ subnet: "10.1.0.0/24" }]] },
  ...more,
});

describe("section 2 Parameters", () => {
  test.each([
    ["of one character", { CNI_CONTAINERID: "a", CNI_IFNAME: "e" }, { name: "n" }],
    ["with every character allowed", { CNI_CONTAINERID: "0a_.-Z", CNI_IFNAME: "e.0-_@!" }, { name: "0n_.-Z" }],
    [
      "as long as they may be",
      { CNI_CONTAINERID: "a".repeat(128), CNI_IFNAME: "e".repeat(15) },
      { name: "n".repeat(80) },
    ],
  ])("names %s are taken", async (_, env, more) => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const stdin = confOf(agent.socket, directory.path, more);
    resultOf(await run({ env: variables("ADD", env), stdin }));
    expect((await run({ env: variables("DEL", env), stdin })).status).toBe(0);
  });

  test.each([
    ["STATUS", {}],
    ["GC", { "cni.dev/valid-attachments": [] }],
  ])("%s does not look at variables that it does not need", async (verb, more) => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const env = variables(verb, { CNI_CONTAINERID: "../x", CNI_IFNAME: "a/b/c", CNI_NETNS: "x", CNI_ARGS: "=;=" });
    const ended = await run({ env, stdin: confOf(agent.socket, directory.path, more) });
    expect([ended.status, ended.stdout]).toEqual([0, ""]);
  });

  test("ADD without CNI_PATH and CNI_ARGS works where nothing is delegated", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const env = variables("ADD", { CNI_PATH: undefined, CNI_ARGS: undefined });
    resultOf(await run({ env, stdin: confOf(agent.socket, directory.path) }));
    expect(agent.asked[0]!.request).toMatchObject({ args: "", path: "" });
  });
});

describe("section 1 Network configuration", () => {
  test("keys of the runtime match in any case, as Go's decoder has it", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const { socket, ipam, ...rest } = confOf(agent.socket, directory.path);
    const { type, dataDir, ranges } = ipam;
    const stdin = {
      ...rest,
      Socket: socket,
      IPAM: { Type: type, DataDir: dataDir, Ranges: ranges },
      RuntimeConfig: {
        IPs: ["10.1.0.99"],
        DNS: { Servers: ["10.96.0.10"], Searches: null },
        PortMappings: [{ HostPort: 1 }],
      },
    };
    const added = resultOf(await run({ env: variables("ADD"), stdin }));
    expect(added).toMatchObject({ ips: [{ address: "10.1.0.99/24" }] });
  });

  test("null is the same as a key that is not there", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const nulls = { prevResult: null, runtimeConfig: null, dns: null, mtu: null, logFile: null, args: null };
    resultOf(await run({ env: variables("ADD"), stdin: confOf(agent.socket, directory.path, nulls) }));
  });
});

describe("section 2 Lifecycle & Ordering", () => {
  test("twenty ADDs at once get twenty addresses", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const stdin = confOf(agent.socket, directory.path);
    const calls = Array.from({ length: 20 }, (_, i) =>
      run({ env: variables("ADD", { CNI_CONTAINERID: `c${i}` }), stdin }),
    );
    const addresses = (await Promise.all(calls)).map((ended) => JSON.stringify(resultOf(ended)["ips"]));
    expect(new Set(addresses).size).toBe(20);
  });

  test("the same ADD many times at once gets one address", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const stdin = confOf(agent.socket, directory.path);
    const calls = Array.from({ length: 8 }, () => run({ env: variables("ADD"), stdin }));
    const addresses = (await Promise.all(calls)).map((ended) => JSON.stringify(resultOf(ended)["ips"]));
    expect(new Set(addresses).size).toBe(1);
    expect(await leasesIn(directory.path)).toHaveLength(1);
  });

  test("one container may have two interfaces, and one id two networks", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const conf = confOf(agent.socket, directory.path);
    resultOf(await run({ env: variables("ADD"), stdin: conf }));
    resultOf(await run({ env: variables("ADD", { CNI_IFNAME: "eth1" }), stdin: conf }));
    resultOf(await run({ env: variables("ADD"), stdin: { ...conf, name: "m" } }));
    expect((await leasesIn(directory.path)).map(({ address }) => address).sort()).toEqual([
      "10.1.0.2/24",
      "10.1.0.2/24",
      "10.1.0.3/24",
    ]);
  });

  test("an ADD that the runtime kills while it waits leaves a lease that DEL gives up", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent(obligingButAnswering(() => "silence"));
    const stdin = confOf(agent.socket, directory.path);
    const add = start({ env: variables("ADD"), stdin });
    while ((await leasesIn(directory.path)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    kill(add);
    expect((await add.ended).status).toBe(null);
    expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["allocated"]);
    agent.follow(obliging());
    expect((await run({ env: variables("DEL"), stdin })).status).toBe(0);
    expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing"]);
  });

  test("an ADD that finds the addresses used up says so", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const conf = confOf(agent.socket, directory.path);
    const stdin = { ...conf, ipam: { ...conf.ipam, ranges: [[{ subnet: "10.1.0.0/30" }]] } };
    resultOf(await run({ env: variables("ADD"), stdin }));
    const failed = errorOf(await run({ env: variables("ADD", { CNI_CONTAINERID: "c2" }), stdin }));
    expect(failed).toMatchObject({ code: 101, msg: expect.stringContaining("10.1.0.") });
  });
});
