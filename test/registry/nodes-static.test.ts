import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type AgentHome, type AgentProcess, bridgeName, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { pipette, registryHome } from "./registry-home.ts";

const others = [{ name: "other", addresses: ["192.0.2.2"], subnets: ["10.79.1.0/24"] }];
const entry = (subnet: string, more: object = {}) => ({
  name: "here",
  addresses: ["192.0.2.1"],
  subnets: [subnet],
  ...more,
});

describeWith("a node that joins by a file of nodes", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let file: string;
  let pods: string[];

  beforeEach(async () => {
    sandbox = await NetworkSandbox.enter("pt-rs-");
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
    pods = [await sandbox.addPod(), await sandbox.addPod()];
    home = registryHome(({ directory }) => {
      file = join(directory, "nodes.yaml");
      return { type: "static", file };
    });
  });
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    await sandbox[Symbol.asyncDispose]();
  });

  /** Replaced as a whole, as a person's editor does. */
  const write = (nodes: readonly object[], text = JSON.stringify({ nodes })): void => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const add = (id: string, pod: number) => home.cmd("cmdAdd", id, { netns: pods[pod] ?? "" });
  const addressOf = async (id: string, pod: number): Promise<string> =>
    resultOf(await add(id, pod)).ips[0]?.address.split("/")[0] ?? "";
  const waits = (agent: AgentProcess, text: string) =>
    agent.logged(({ message, error }) => message === "waiting to join" && String(error).includes(text));

  test("waits with its reason until its entry is there, and has its subnet then", async () => {
    const agent = home.spawn();
    await waits(agent, `"${file}" cannot be read: ENOENT`);
    // Nothing else of the node waits for it: the service manager has its word.
    await agent.logged(({ message }) => message === "serving without a data path until the node has joined");
    const refused = (await add("early", 0)).error;
    expect(refused).toMatchObject({
      code: 11,
      message: expect.stringContaining("the agent waits to join"),
    });
    expect(refused?.message).toContain("ENOENT");
    expect((await home.status()).problems).toEqual([{ code: 50, message: refused?.message, advisory: false }]);
    const told = await pipette(home, "status", "--socket", home.socket);
    expect(told).toMatchObject({ status: 1, stderr: "" });
    expect(told.stdout).toMatch(/^pipette agent .*, joining, up /);
    expect(told.stdout).toContain(`\nproblem 50: ${refused?.message}`);
    expect((await home.status()).state).toBe("joining");
    write([], "nodes: [{ name: here");
    await waits(agent, "has 2 faults, the first: ");
    write(others);
    await waits(agent, 'has no node "here", wanted an entry such as { name: here, addresses: [192.0.2.1]');
    const logged = agent.lines.filter(({ message }) => message === "waiting to join").map(({ error }) => error);
    expect(new Set(logged).size).toBe(logged.length);
    write([...others, entry("10.79.0.0/24")]);
    await agent.logged(({ message }) => message === "ready");
    expect(await addressOf("early", 0)).toMatch(/^10\.79\.0\.\d+$/);
    await eventually(async () => (await home.status()).cluster.includes("1 others"), "the other node");
    const { problems, cluster } = await home.status();
    expect([problems, cluster]).toEqual([
      [],
      `node here at 192.0.2.1 with 10.79.0.0/24, 1 others; from the file of nodes "${file}"`,
    ]);
    expect(readFileSync(home.conflist, "utf8")).toContain('"subnet": "10.79.0.0/24"');
    expect(await agent.end()).toBe(0);
  });

  test("waits for its own address, without which no other node could be reached", async () => {
    await sandbox.node("ip address del 192.0.2.1/24 dev lo");
    write([...others, entry("10.79.0.0/24")]);
    const agent = home.spawn();
    await waits(agent, "no interface has 192.0.2.1 yet");
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
    await agent.logged(({ message }) => message === "ready");
  });

  test("stops at once while it waits", async () => {
    const agent = home.spawn();
    await waits(agent, "ENOENT");
    expect(await agent.end()).toBe(0);
  });

  test("ends, for its supervisor to start it again, where it has joined late and then cannot wire", async () => {
    await sandbox.node(`ip link add ${bridgeName} type veth peer name other`);
    const agent = home.spawn();
    await agent.logged(({ message }) => message === "serving without a data path until the node has joined");
    write([entry("10.79.0.0/24")]);
    expect(await agent.ended()).toBe(1);
    expect(agent.stderr).toContain(`\\"${bridgeName}\\"`);
  });

  test("goes on with what it knows while the file is gone, and gives new pods addresses", async () => {
    write([...others, entry("10.79.0.0/24")]);
    const first = await home.start();
    const before = await addressOf("one", 0);
    await eventually(
      () => readFileSync(join(home.dataDir, "nodes.json"), "utf8").includes('"other"'),
      "the other node",
    );
    await first.end("SIGKILL");
    rmSync(file);
    // As early in a boot: the agent starts before the network does.
    await sandbox.node("ip address del 192.0.2.1/24 dev lo");
    const agent = home.spawn();
    await waits(agent, "no interface has 192.0.2.1 yet");
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
    await agent.logged(({ message }) => message === "ready");
    expect(await addressOf("one", 0)).toBe(before);
    expect(await addressOf("two", 1)).toMatch(/^10\.79\.0\.\d+$/);
    expect((await home.status()).cluster).toContain("1 others; from what was last known, not from the file of nodes");
    write([...others, entry("10.79.0.0/24")]);
    await agent.logged(({ message }) => message === "the registry has this node as it was known");
    expect((await home.status()).cluster).toContain('; from the file of nodes "');
  });

  test("what a release before has kept of records that cannot be ends no agent, with a kernel bridge too", async () => {
    write([...others, entry("10.79.0.0/24")]);
    const first = await home.start();
    await eventually(async () => (await home.status()).cluster.includes("1 others"), "the other node");
    await first.end();
    const kept = join(home.dataDir, "nodes.json");
    const { admitted: _, ...known } = JSON.parse(readFileSync(kept, "utf8"));
    known.nodes.push({ name: "liar", addresses: ["192.0.2.9"], subnets: ["224.0.0.0/4"] });
    known.nodes.push({ name: "thief", addresses: ["192.0.2.1"], subnets: ["10.79.7.0/24"] });
    writeFileSync(kept, JSON.stringify(known));
    rmSync(file);
    await home.start();
    const { cluster, refusals, problems } = await home.status();
    expect(cluster).toContain("1 others; from what was last known");
    expect(refusals).toEqual([
      'node "liar" is left out: its subnet "224.0.0.0/4" touches "224.0.0.0/3", multicast, reserved addresses and broadcast',
      'node "thief" is left out: it has "192.0.2.1", the address of "here"',
    ]);
    expect(problems).toEqual([]);
    write([...others, entry("10.79.0.0/24")]);
    await eventually(async () => (await home.status()).refusals.length === 0, "the file's word");
  });

  test("gives no pod an address once its entry is gone, leaves those that run alone, and joins anew after them", async () => {
    write([...others, entry("10.79.0.0/24")]);
    const agent = await home.start();
    const before = await addressOf("one", 0);
    write(others);
    const refused = await eventually(
      async () => (await home.status()).problems[0]?.message,
      "the problem in the status",
    );
    expect(refused).toContain(`the file of nodes "${file}" has no node "here" any more`);
    expect((await add("two", 1)).error).toEqual({ code: 11, message: refused, details: [] });
    expect(await addressOf("one", 0)).toBe(before);
    expect(await sandbox.ping(pods[0], "10.79.0.1")).toBe(true);
    expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
    await eventually(
      async () => (await home.store()).list().every(({ state }) => state === "cooling"),
      "the pod to go",
    );
    expect(await agent.ended()).toBe(1);
    expect(agent.stderr).toContain("and no pod is left: wanted a new start, to join anew");
    write([...others, entry("10.79.2.0/24")]);
    await home.start();
    expect(await addressOf("two", 1)).toMatch(/^10\.79\.2\.\d+$/);
  });

  test.each(["its entry is gone", "the file is gone too"])(
    "a start of the agent after it was taken out, while %s: pods are still taken down, and none comes",
    async (reason) => {
      write([...others, entry("10.79.0.0/24")]);
      const first = await home.start();
      const before = await addressOf("one", 0);
      write(others);
      await eventually(async () => (await home.status()).problems.length > 0, "the problem");
      await first.end();
      if (reason === "the file is gone too") rmSync(file);
      const agent = home.spawn();
      await agent.logged(({ message }) => message === "ready");
      expect(await addressOf("one", 0)).toBe(before);
      expect((await add("two", 1)).error).toMatchObject({
        code: 11,
        message: expect.stringContaining('no node "here"'),
      });
      expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
      expect(await agent.ended()).toBe(1);
      expect(agent.stderr).toContain("and no pod is left: wanted a new start, to join anew");
      const next = home.spawn();
      await waits(next, reason === "the file is gone too" ? "ENOENT" : 'has no node "here"');
    },
  );

  test("an entry that comes back makes all good again", async () => {
    write([entry("10.79.0.0/24")]);
    const agent = await home.start();
    await addressOf("one", 0);
    write([]);
    await eventually(async () => (await home.status()).problems.length > 0, "the problem");
    write([entry("10.79.0.0/24")]);
    await eventually(async () => (await home.status()).problems.length === 0, "the problem to go");
    expect(await addressOf("two", 1)).toMatch(/^10\.79\.0\.\d+$/);
    expect(agent.stderr).not.toContain("wanted a new start");
  });

  test.each([
    ["another subnet", entry("10.79.5.0/24"), "gives it 10.79.5.0/24, and its pods have 10.79.0.0/24"],
    ["another machine's uid", entry("10.79.0.0/24", { uid: "of-another" }), 'uid "of-another"'],
  ])("%s at a start: pods stay as they are, and no new one comes", async (_name, changed, reason) => {
    write([entry("10.79.0.0/24")]);
    const first = await home.start();
    const before = await addressOf("one", 0);
    await first.end();
    write([changed]);
    await home.start();
    expect(await addressOf("one", 0)).toBe(before);
    expect((await add("two", 1)).error).toMatchObject({ code: 11, message: expect.stringContaining(reason) });
  });
});
