import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { executables } from "../conformance/plugin.ts";
import { type AgentHome, type AgentProcess, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { pipette, registryHome } from "./registry-home.ts";

describeWith("a node that joins by etcd, with the compiled executable", ["root", "nft", "etcd"], () => {
  let sandbox: NetworkSandbox;
  let etcd: EtcdCluster;
  let home: AgentHome;
  let pods: string[];

  beforeEach(async () => {
    sandbox = await NetworkSandbox.enter("pt-re-");
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
    etcd = await EtcdCluster.start();
    home = registryHome(() => ({ type: "etcd", endpoints: etcd.endpoints }), { executables });
    pods = [await sandbox.addPod(), await sandbox.addPod()];
  });
  afterEach(async () => {
    await home?.[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  const add = (id: string, pod: number) => home.cmd("cmdAdd", id, { netns: pods[pod] ?? "" });
  const addressOf = async (id: string, pod: number) => resultOf(await add(id, pod)).ips[0]?.address ?? "";
  const run = (...words: string[]) => pipette(home, ...words);
  const said = (agent: AgentProcess, message: string) => agent.logged((line) => line["message"] === message);
  const problem = () => eventually(async () => (await home.status()).problems[0]?.message, "a problem in the status");

  test("without etcd it waits; with it, it joins; without it again, it goes on", { timeout: 120_000 }, async () => {
    await etcd.signal(0, "SIGKILL");
    const waiting = home.spawn();
    const silent = "waits to join. Cannot join: the registry has given no answer for 2000 ms";
    await eventually(
      async () => (await home.status().catch(() => undefined))?.problems[0]?.message.includes(silent),
      "the reason in the status",
    );
    expect((await add("early", 0)).error).toMatchObject({ code: 11, message: expect.stringContaining(silent) });
    await etcd.startMember(0);
    await said(waiting, "ready");
    const before = await addressOf("one", 0);
    expect(before).toMatch(/^10\.128\.[01]\.\d+\/23$/);
    expect((await home.status()).cluster).toContain(
      "node here at 192.0.2.1 with 10.128.0.0/23, 0 others; from the etcd",
    );
    const [, , line] = (await pipette(home, "status", "--socket", home.socket)).stdout.split("\n");
    expect(line).toMatch(/^node here at 192\.0\.2\.1 with 10\.128\.0\.0\/23/);

    // A peer that comes is known at once, and stays known.
    expect(await run("nodes", "register", "there", "--uid", "of-there", "--address", "192.0.2.2")).toMatchObject({
      status: 0,
      stdout: "there has 10.129.0.0/23",
    });
    await eventually(async () => (await home.status()).cluster.includes("1 others"), "the other node");
    await waiting.end();
    await etcd.signal(0, "SIGKILL");
    // The cluster's members may have changed meanwhile.
    const config = JSON.parse(readFileSync(home.configFile, "utf8"));
    config.nodes.registry.endpoints.push("http://127.0.0.1:1");
    writeFileSync(home.configFile, JSON.stringify(config));
    const agent = home.spawn();
    await said(agent, "starting with what was last known of the other nodes");
    await said(agent, "ready");
    expect(await addressOf("one", 0)).toBe(before);
    expect(await addressOf("two", 1)).toMatch(/^10\.128\.[01]\.\d+\/23$/);
    const { problems, cluster } = await home.status();
    expect(problems).toEqual([]);
    expect(cluster).toContain("1 others; from what was last known, not from the etcd registry");
    await etcd.startMember(0);
    await said(agent, "the registry has this node as it was known");
    await eventually(async () => (await run("nodes", "list")).stdout.includes("here   ready"), "its sign of life");
  });

  test("a node that is taken out gives no more addresses, and joins anew when its pods are gone", async () => {
    const first = await home.start();
    const before = await addressOf("one", 0);
    await eventually(async () => (await run("nodes", "list")).stdout.includes("ready"), "its sign of life");
    expect(await run("nodes", "release", "here")).toEqual({
      status: 1,
      stdout: "",
      stderr: 'Cannot release the node: "here" was heard of lately, and its pods may run, wanted --force',
    });
    const released = await run("nodes", "release", "here", "--force");
    expect(released).toEqual({ status: 0, stdout: "Released here; free now: 10.128.0.0/23", stderr: "" });
    const reason = await problem();
    expect(reason).toContain('has no node "here" any more, wanted this node\'s own subnet');
    expect((await add("two", 1)).error).toMatchObject({ code: 11, message: reason });
    expect(await addressOf("one", 0)).toBe(before);

    // A start does not take another subnet either: the others would send to that one only.
    await first.end();
    const agent = await home.start();
    expect((await run("nodes", "list")).stdout).toMatch(/^No nodes in/);
    expect(await problem()).toBe(reason);
    expect(await addressOf("one", 0)).toBe(before);

    // Its name is another machine's meanwhile, under which it must not come back.
    await run("nodes", "register", "here", "--uid", "of-another", "--address", "192.0.2.9");
    await eventually(
      async () => (await home.status()).problems[0]?.message.includes('uid "of-another", another machine at 192.0.2.9'),
      "the other machine in the status",
    );
    await home.cmd("cmdDel", "one");
    expect(await agent.ended()).toBe(1);
    const next = home.spawn();
    const line = await said(next, "waiting to join");
    expect(line["error"]).toContain("192.0.2.9");
    expect((await run("nodes", "release", "here")).status).toBe(0);
    await said(next, "ready");
    expect(await addressOf("two", 1)).toMatch(/^10\.1(28|29|30|31)\.[0-9]+\.\d+\/23$/);
  });

  test("a node that is taken out while its agent is down takes no other subnet as long as pods stand", async () => {
    const first = await home.start();
    const before = await addressOf("one", 0);
    await first.end();
    expect((await run("nodes", "release", "here")).status).toBe(0);
    await home.start();
    // What the registration was told, until the list of nodes has come, which says the same in other words.
    const reason = /it has no such node any more, and pods of this one stand|has no node "here" any more/;
    await eventually(async () => reason.test(await problem()), "the reason");
    expect((await run("nodes", "list")).stdout).toMatch(/^No nodes in/);
    expect(await addressOf("one", 0)).toBe(before);
    expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
  });

  test("the commands tell what there is, and what is not", async () => {
    expect((await run("nodes", "list")).stdout).toMatch(/^No nodes in the etcd registry at http/);
    expect((await run("nodes", "register", "--mac", "52:54:00:00:00:01")).stdout).toBe("here has 10.128.0.0/23");
    expect((await run("nodes", "register")).stdout).toBe("here has 10.128.0.0/23");
    expect((await run("nodes", "register", "b", "--uid", "u", "--address", "192.0.2.1")).status).toBe(0);
    const { stdout } = await run("nodes", "list", "--json");
    const listed = JSON.parse(stdout);
    expect(listed).toMatchObject({
      registry: expect.stringContaining("the etcd registry"),
      revision: expect.any(Number),
      nodes: [
        { name: "b", uid: "u", addresses: ["192.0.2.1"], subnets: ["10.129.0.0/23"], state: "lost" },
        { name: "here", uid: expect.stringMatching(/^[0-9a-f-]{36}$/), subnets: ["10.128.0.0/23"] },
      ],
    });
    const taken = await run("nodes", "register", "b", "--uid", "v", "--address", "192.0.2.3");
    expect([taken.status, taken.stdout]).toEqual([1, ""]);
    expect(taken.stderr).toContain('"b"');
    expect(await run("nodes", "repair")).toEqual({ status: 0, stdout: "All fits together", stderr: "" });
    expect((await run("nodes", "release", "b", "--json")).stdout).toContain('"10.129.0.0/23"');
    expect((await run("nodes", "release", "b")).status).toBe(3);

    expect((await run("tenants", "list")).stdout).toMatch(/^No tenants in/);
    const vnid = (await run("tenants", "isolate", "shop")).stdout;
    expect(vnid).toMatch(/^shop has VNID \d{2,8}$/);
    expect((await run("tenants", "join", "bank", "shop")).stdout).toBe(vnid.replace("shop", "bank"));
    expect((await run("tenants", "global", "bank")).stdout).toBe("bank has VNID 0");
    expect((await run("tenants", "list")).stdout).toMatch(/^PROJECT +VNID\nbank +0\nshop +\d+$/);
    expect((await run("tenants", "global", "No_Name")).status).toBe(2);
  });
});
