import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { callTimes, cniService } from "../../shared/proto/services.ts";
import { callUnary } from "../../shared/rpc/call.ts";
import { bridgeName, eventually, networkName } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { inOwnMounts, WhyNode } from "./why-node.ts";

describeWith("why a pod has no network, with the cause planted", ["root", "nft"], () => {
  let node: WhyNode;

  beforeAll(async () => {
    node = await WhyNode.enter();
  });
  afterEach(() => node.clear());
  afterAll(() => node?.[Symbol.asyncDispose]());

  test("its agent's last calls tell, each with what to do; a later success is the end of it", async () => {
    await node.start({ networks: [{ name: networkName, subnets: ["10.78.0.0/29"], bridge: bridgeName }] });
    const taken = await node.sandbox.addPod("taken");
    await node.sandbox.pod(taken, "ip link add eth0 type veth peer name other");
    await node.add("named", { netns: taken });
    expect(await node.why("named")).toMatchObject({
      status: 1,
      code: "name-taken",
      todo: [expect.stringContaining("remove")],
    });

    const mac = "02:00:5e:10:00:01";
    const conf = { runtimeConfig: { mac } };
    expect((await node.add("first", { conf })).answer.error).toBeUndefined();
    await node.add("second", { conf });
    expect(await node.why("second")).toMatchObject({ status: 1, code: "mac-taken" });
    expect(await node.why("first")).toMatchObject({
      status: 0,
      result: "fine",
      cause: expect.stringContaining("10.78.0."),
    });

    await node.add("elsewhere", { conf: { name: "other" } });
    expect(await node.why("elsewhere")).toMatchObject({ status: 1, code: "network-unknown" });
    await node.add("stored", { conf: { ipam: { type: "pipette-ipam", dataDir: "/elsewhere" } } });
    expect(await node.why("stored")).toMatchObject({ status: 1, code: "data-directories-differ" });

    for (const name of ["a", "b", "c", "d", "e"]) await node.add(name);
    const full = await node.add("late");
    expect(full.answer.error?.code).toBe(101);
    for (let i = 0; i < 3; i++) await node.add("late");
    const late = await node.why("late");
    expect(late).toMatchObject({
      ...{ status: 1, code: "pool-exhausted" },
      cause: "shop/late has no network: no address of its network is free on the node",
    });
    expect(late.evidence[0]).toMatch(
      /^the agent, of its ADD in "ipam" \(code 101\), \d+ s ago, 4 times: .* has 0 of 5 addresses free/,
    );
    // An agent makes its documents anew some times a second.
    const counted = /^addresses: of 5 in .* of pods 5 are allocated/;
    await eventually(async () => (await node.why("late")).evidence.some((line) => counted.test(line)), "the addresses");
    await eventually(async () => (await node.why(undefined)).code === "pool-exhausted", "the node's own word of it");
    expect(await node.why(undefined)).toMatchObject({ status: 1, code: "pool-exhausted" });
    expect(await node.why("nobody")).toMatchObject({ status: 1 });
  });

  test("an agent that is frozen, gone, or of another user's", async () => {
    const agent = await node.start();
    expect(await node.why(undefined)).toMatchObject({ status: 0, result: "fine" });
    expect(await node.why("unknown")).toMatchObject({ status: 1, code: "no-call" });
    {
      using _ = await agent.held();
      expect(await node.why("cart")).toMatchObject({ status: 1, code: "agent-hangs" });
    }
    await agent.end();
    expect(await node.why("cart")).toMatchObject({
      ...{ status: 1, code: "agent-away", todo: [expect.stringContaining("pipette-agent"), expect.anything()] },
    });
    const event = await node.plugin({
      ipam: { type: "pipette-ipam", dataDir: node.home.dataDir, subnet: "10.78.0.0/16" },
    });
    expect(await node.why("cart", "--event", event)).toMatchObject({
      code: "agent-away",
      evidence: [expect.stringContaining("as you say")],
    });
    const refused = await node.plugin({ logFile: "/etc/passwd" });
    expect(await node.why("cart", "--event", refused)).toMatchObject({ status: 1, code: "log-file-refused" });
  });

  test("an agent that does not begin: its configuration, its database, its directory", async () => {
    const agent = await node.start();
    await agent.end();
    chmodSync(node.home.configFile, 0o666);
    node.running = node.home.spawn();
    expect(await node.running.ended()).not.toBe(0);
    expect(await node.why(undefined)).toMatchObject({ status: 1, code: "configuration-open-to-others" });
    chmodSync(node.home.configFile, 0o600);

    chmodSync(node.home.dataDir, 0o777);
    node.running = node.home.spawn();
    expect(await node.running.ended()).not.toBe(0);
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "database-open-to-others" });
    chmodSync(node.home.dataDir, 0o700);
  });

  test("an agent that ended because its socket or its database was taken away", async () => {
    let agent = await node.start({ janitorIntervalMs: 200 });
    rmSync(node.home.socket);
    await agent.ended();
    const told = await node.why("cart");
    expect(told).toMatchObject({ status: 1, code: "socket-gone" });
    // Who was asked and did not answer is named once, as that.
    expect(told.asked.filter(({ source }) => source.startsWith("the agent"))).toEqual([
      { source: `the agent at "${node.home.socket}"`, failure: expect.stringContaining("nobody serves") },
    ]);
    agent = await node.home.start();
    node.running = agent;
    for (const name of ["leases.db", "leases.db-wal", "leases.db-shm"])
      rmSync(join(node.home.dataDir, name), { force: true });
    await agent.ended();
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "database-gone" });
  });

  test("a directory that is mounted read-only", async () => {
    using place = scratchDir();
    const home = await node.make(
      { dataDir: join(place.path, "data") },
      inOwnMounts(`mount -t tmpfs -o ro none ${place.path}`),
    );
    node.running = home.spawn();
    expect(await node.running.ended()).not.toBe(0);
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "unit-forbids-directory" });
  });

  test("a node that waits to join, whose registry does not know it", async () => {
    const home = await node.make();
    const file = join(home.directory, "nodes.yaml");
    writeFileSync(file, "nodes: []\n", { mode: 0o600 });
    home.change({
      networks: [{ name: networkName, bridge: bridgeName }],
      nodes: { name: "here", addresses: ["10.99.0.1"], registry: { type: "static", file } },
    });
    node.running = home.spawn();
    await node.running.logged(({ message }) => message === "serving without a data path until the node has joined");
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "waits-to-join" });
    expect(await node.why(undefined)).toMatchObject({ status: 1, code: "waits-to-join" });
  });

  test("a late DEL that met the sandbox again is told, and no cause", async () => {
    await node.start();
    const { id } = await node.add("again");
    const args = "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=again";
    const conf = new TextEncoder().encode(JSON.stringify({ cniVersion: "1.0.0", name: networkName, type: "pipette" }));
    const cniArgs = { containerId: id, netns: "", ifname: "eth0", args, path: "", networkConfiguration: conf };
    const options = { timeoutMs: 10_000, metadata: { [callTimes.startedMs]: "1" } };
    const { error } = await callUnary(node.home.socket, cniService.cmdDel, { cniArgs }, options);
    expect(error?.code).toBe(104);
    expect(await node.why("again")).toMatchObject({
      ...{ status: 0, result: "fine" },
      evidence: expect.arrayContaining([expect.stringContaining("it has been added again since the DEL began")]),
    });
  });
});
