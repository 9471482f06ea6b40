import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ScriptedApiServer } from "../fakes/kubernetes/scripted-api-server.ts";
import { type AgentHome, bridgeName, eventually, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { pipette, registryHome } from "./registry-home.ts";

/** Where a node can get its subnet from, and which one it is there. */
type Place = "file" | "etcd" | "etcd elsewhere" | "kubernetes" | "agent.yaml";

const fileSubnet = "10.79.0.0/24";
const kubernetesSubnet = "10.81.0.0/24";
const ownSubnet = "10.78.0.0/24";
const inSubnetOf: Readonly<Record<Place, RegExp>> = {
  file: /^10\.79\.0\./,
  etcd: /^10\.128\.[01]\./,
  "etcd elsewhere": /^10\.129\.[01]\./,
  kubernetes: /^10\.81\.0\./,
  "agent.yaml": /^10\.78\.0\./,
};

describeWith("a node whose registry is changed under its pods", ["root", "nft", "etcd"], () => {
  let sandbox: NetworkSandbox;
  let etcd: EtcdCluster;
  let kubernetes: ScriptedApiServer;
  let home: AgentHome;
  let file: string;
  let pods: string[];

  beforeEach(async () => {
    sandbox = await NetworkSandbox.enter("pt-rc-");
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
    etcd = await EtcdCluster.start();
    kubernetes = await ScriptedApiServer.start();
    home = registryHome(({ directory }) => {
      file = join(directory, "nodes.yaml");
      return { type: "static", file };
    });
    pods = [await sandbox.addPod(), await sandbox.addPod()];
    kubernetes.put("here", [kubernetesSubnet], "192.0.2.1");
    writeNodes([{ name: "here", addresses: ["192.0.2.1"], subnets: [fileSubnet] }]);
  });
  afterEach(async () => {
    await home?.[Symbol.asyncDispose]();
    await kubernetes?.[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  const writeNodes = (nodes: readonly object[]): void => {
    writeFileSync(`${file}.new`, JSON.stringify({ nodes }));
    renameSync(`${file}.new`, file);
  };
  const add = (id: string, pod: number) => home.cmd("cmdAdd", id, { netns: pods[pod] ?? "" });
  const addressOf = async (id: string, pod: number) => resultOf(await add(id, pod)).ips[0]?.address ?? "";
  const allCool = () =>
    eventually(async () => {
      using store = await home.store();
      return store.list().every(({ state }) => state === "cooling");
    }, "the leases to cool");

  /** The agent of the next start has its subnet from there. */
  function moveTo(place: Place, more: object = {}): void {
    const config = JSON.parse(readFileSync(home.configFile, "utf8"));
    const { endpoints } = etcd;
    // A subnet that one of its nodes has: this one would get it otherwise.
    const elsewhere = {
      type: "etcd",
      endpoints,
      prefix: "/elsewhere",
      networks: [{ cidr: "10.129.0.0/16", hostBits: 9 }],
    };
    const registries = {
      file: { type: "static", file },
      etcd: { type: "etcd", endpoints, ...more },
      "etcd elsewhere": elsewhere,
      kubernetes: { type: "kubernetes", server: kubernetes.url },
    };
    const network = { name: networkName, bridge: bridgeName, masquerade: false };
    if (place === "agent.yaml") {
      delete config.nodes;
      config.networks = [{ ...network, subnets: [ownSubnet] }];
    } else {
      // What the configuration says of subnets besides is of the new place as well.
      config.networks = [place === "file" ? { ...network, subnets: [fileSubnet] } : network];
      config.nodes = { name: "here", addresses: ["192.0.2.1"], registry: registries[place] };
    }
    writeFileSync(home.configFile, JSON.stringify(config));
  }

  test.each<[from: Place, to: Place]>([
    ["file", "etcd"],
    ["etcd", "file"],
    ["etcd", "kubernetes"],
    ["etcd", "etcd elsewhere"],
    ["agent.yaml", "file"],
    ["kubernetes", "etcd"],
  ])("from %s to %s: pods stay until they are taken down, and the node has its new subnet then", async (from, to) => {
    moveTo(from);
    const first = await home.start();
    const before = await addressOf("one", 0);
    expect(before).toMatch(inSubnetOf[from]);
    await first.end();

    moveTo(to);
    const agent = home.spawn();
    await agent.logged(({ message }) => message === "ready");
    // The same again after the next start, which knows the new registry already.
    await agent.end();
    const again = await home.start();
    expect(await addressOf("one", 0)).toBe(before);
    expect(await sandbox.ping(pods[0], `${before.slice(0, before.lastIndexOf("."))}.1`)).toBe(true);
    const [problem] = (await home.status()).problems;
    expect(problem?.message).toMatch(/^Cannot give a pod an address: .* gives it .*, and its pods have /);
    expect(problem?.message).toContain("or drain the node, which joins anew by itself once its pods have gone");
    expect((await add("two", 1)).error).toMatchObject({ code: 11, message: problem?.message });

    expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
    await allCool();
    expect(await again.ended()).toBe(1);
    await home.start();
    expect(await addressOf("two", 1)).toMatch(inSubnetOf[to]);
    expect((await home.status()).problems).toEqual([]);
  });

  test("the same subnet is kept, and nobody waits, where the new registry gives it or can", async () => {
    moveTo("file");
    const first = await home.start();
    const before = await addressOf("one", 0);
    await first.end();
    moveTo("etcd", { networks: [{ cidr: "10.79.0.0/16", hostBits: 8 }] });
    // Another node has been given one already.
    const other = await pipette(home, "nodes", "register", "there", "--uid", "of-there", "--address", "192.0.2.2");
    expect(other.stdout).toBe("there has 10.79.0.0/24");
    expect((await pipette(home, "nodes", "release", "there", "--force")).status).toBe(0);
    await pipette(home, "nodes", "register", "there", "--uid", "of-there", "--address", "192.0.2.2");
    const second = await home.start();
    expect((await home.status()).problems).toEqual([]);
    expect(await addressOf("one", 0)).toBe(before);
    expect(await addressOf("two", 1)).toMatch(inSubnetOf.file);
    await second.end();
    kubernetes.put("here", [fileSubnet], "192.0.2.1");
    moveTo("kubernetes");
    await home.start();
    expect((await home.status()).problems).toEqual([]);
    expect(await addressOf("one", 0)).toBe(before);
  });

  test("while the new registry is away: pods stay, are taken down, and its word counts when it comes", async () => {
    moveTo("file");
    const first = await home.start();
    const before = await addressOf("one", 0);
    await addressOf("two", 1);
    await first.end();
    await etcd.signal(0, "SIGKILL");
    moveTo("etcd", { networks: [{ cidr: "10.79.0.0/16", hostBits: 8 }] });
    await home.start();
    expect(await addressOf("one", 0)).toBe(before);
    const [problem] = (await home.status()).problems;
    expect(problem?.message).toContain("the etcd registry at ");
    expect((await add("three", 1)).error).toMatchObject({ code: 11, message: problem?.message });
    expect((await home.cmd("cmdDel", "two")).error).toBeUndefined();
    await eventually(async () => (await home.containers()).join() === "one", "the second pod to go");
    await etcd.startMember(0);
    await eventually(async () => (await home.status()).problems.length === 0, "the problem to go");
    expect(await addressOf("one", 0)).toBe(before);
    expect(await addressOf("two", 1)).toMatch(inSubnetOf.file);
  });

  test("a file that has no entry for the node yet: pods stay, and one with their subnet makes all good", async () => {
    moveTo("etcd", { networks: [{ cidr: "10.79.0.0/16", hostBits: 8 }] });
    const first = await home.start();
    const before = await addressOf("one", 0);
    await first.end();
    writeNodes([]);
    moveTo("file");
    const agent = await home.start();
    expect((await home.status()).problems[0]?.message).toContain('has no node "here"');
    expect(await addressOf("one", 0)).toBe(before);
    writeNodes([{ name: "here", addresses: ["192.0.2.1"], subnets: [fileSubnet] }]);
    await eventually(async () => (await home.status()).problems.length === 0, "the problem to go");
    expect(await addressOf("two", 1)).toMatch(inSubnetOf.file);
    await agent.end();
    await home.start();
    expect((await home.status()).problems).toEqual([]);
  });

  test("what is known of the nodes is lost, and the registry gives another subnet: the same", async () => {
    const first = await home.start();
    await addressOf("one", 0);
    await first.end();
    rmSync(join(home.dataDir, "nodes.json"));
    writeNodes([{ name: "here", addresses: ["192.0.2.1"], subnets: ["10.79.5.0/24"] }]);
    const agent = await home.start();
    expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
    expect(await agent.ended()).toBe(1);
    await home.start();
    expect(await addressOf("two", 1)).toMatch(/^10\.79\.5\./);
  });
});
