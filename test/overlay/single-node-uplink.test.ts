import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { external, nodeOn, routerOn } from "./lab/addresses.ts";
import { answers, unansweredPings } from "./lab/reach.ts";
import { scratchUntilEnd } from "./lab/scratch-until-end.ts";
import { seenBy, TcpServer } from "./lab/tcp.ts";
import { podPortsOf, SingleNode, subnets } from "./single-node.ts";

describeWith("a node whose own interface is a port of the pods' bridge", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode | undefined;

  beforeAll(compileExecutables, 120_000);
  afterEach(() => single?.[Symbol.asyncDispose]());

  test.each(["encap", "noEncap"])("%s: node and pods reach the world outside by it, and are reached", async (mode) => {
    single = await SingleNode.start({ mode }, "uplink");
    const { node, underlay } = single;
    const pod = await node.addPod("a");
    const outside = { name: "outside", namespace: underlay.namespace, addresses: [...external] };
    const itself = { name: "node", namespace: node.namespace, addresses: [...node.addresses] };
    const ofPod = { name: "pod", namespace: pod.namespace, addresses: pod.addresses };
    expect(await unansweredPings([itself, ofPod], [outside, itself])).toEqual([]);
    expect(await unansweredPings([outside], [itself])).toEqual([]);
    using _server = new TcpServer(underlay.namespace);
    for (const i of [0, 1] as const) {
      expect(await seenBy(node.namespace, external[i])).toBe(node.addresses[i]);
      expect(await seenBy(pod.namespace, external[i])).toBe(node.addresses[i]);
    }
    expect(await holdersOf(node)).toEqual(["br-int"]);
  });

  test("an agent that was killed over the move is finished by the next", async () => {
    single = await SingleNode.ground({}, "uplink");
    const { node, underlay } = single;
    const [router, router6] = routerOn("a");
    await node.namespace.ip(`route add 203.0.113.0/24 via ${router} dev nic0 metric 7 src ${node.addresses[0]}`);
    await node.startAgent();
    await node.agent.end("SIGKILL");
    const after = await routesOf(node);
    expect(after).toContain(`203.0.113.0/24 via ${router} dev br-int src ${node.addresses[0]} metric 7`);
    // Half of it back where it was, as it is where the first address and the first route were moved alone.
    await node.namespace.ip(
      `addr add ${node.addresses[0]}/24 dev nic0`,
      `addr add ${node.addresses[1]}/64 dev nic0 nodad`,
      `addr del ${node.addresses[1]}/64 dev br-int`,
      `route add default via ${router} dev nic0 metric 1`,
      "route del default dev br-int",
      // Beside the one by br-int, of which the kernel makes one route with two ways.
      `route prepend default via ${router6} dev nic0`,
    );
    expect(await default6Of(node)).toMatch(
      /nexthop.*dev br-int.*nexthop.*dev nic0|nexthop.*dev nic0.*nexthop.*dev br-int/s,
    );
    await node.startAgent();
    expect(await holdersOf(node)).toEqual(["br-int"]);
    expect((await routesOf(node)).filter((route) => !route.includes("metric 1"))).toEqual(
      after.filter((route) => !route.startsWith("default")),
    );
    expect(await default6Of(node)).toMatch(new RegExp(`^default via ${router6} dev br-int [^\\n]*$`));
    for (const i of [0, 1] as const) {
      expect(await answers(underlay.namespace, node.addresses[i])).toBe(true);
      expect(await answers(node.namespace, external[i])).toBe(true);
    }
  });

  test("an agent that is to have no uplink any more gives it back, and so does the clean-up, with everything else", async () => {
    single = await SingleNode.ground({}, "uplink");
    const { node, underlay } = single;
    const before = await hostOf(node);
    await node.startAgent();
    await node.addPod("a");
    await node.agent.end();
    await removeKey(node, "uplink");
    await node.startAgent();
    expect(await holdersOf(node)).toEqual(["nic0"]);
    expect(await answers(underlay.namespace, node.addresses[0])).toBe(true);
    await node.agent.end();
    expect(await node.pipette("agent", "--config", node.home.configFile, "--cleanup")).toContain("undone");
    expect(await node.vswitch.vsctl("list-br")).toBe("");
    await isAsBefore(node, before);
  });

  test("the clean-up gives the uplink's addresses back, and refuses while an agent runs", async () => {
    single = await SingleNode.ground({}, "uplink");
    const { node } = single;
    const before = await hostOf(node);
    await node.startAgent();
    await node.addPod("a");
    const cleanUp = (): Promise<string> => node.pipette("agent", "--config", node.home.configFile, "--cleanup");
    await expect(cleanUp()).rejects.toThrow(/agent.*running|lock|held/i);
    await node.agent.end();
    expect(await cleanUp()).toMatch(/^leases +2 leases of pods +undone$/m);
    using store = await node.home.store();
    expect(new Set(store.list().map(({ state }) => state))).toEqual(new Set(["cooling"]));
    await isAsBefore(node, before);
    expect(await answers(node.namespace, external[0])).toBe(true);
  });

  test("what cannot be moved keeps the agent from nothing else", async () => {
    single = await SingleNode.start({}, "uplink");
    const { node } = single;
    const pod = await node.addPod("a");
    const [port = ""] = await podPortsOf(single);
    const [router] = routerOn("a");
    const ways = [1, 2].map((metric) => `nexthop via ${router} dev ${metric === 1 ? "nic0" : "br-int"} onlink`);
    await node.namespace.ip(`route add 203.0.113.0/24 ${ways.join(" ")}`);
    await node.vswitch.vsctl("del-port", "br-int", port);
    await eventually(() => answers(pod.namespace, node.addresses[0]), "the pod's port to come back");
    await eventually(async () => node.agent.stderr.includes("leads out by 2 ways"), "the agent to say so");
  });

  describe("its bridge is lost together with the database", () => {
    const indexOf = async ({ namespace }: Node): Promise<string> =>
      (await namespace.run("ip -o link show br-int").catch(() => "none")).split(":")[0] ?? "";

    /** ovs-vswitchd takes away what its database does not have, and nobody else knows what was on it. */
    async function loseSwitch(node: Node): Promise<void> {
      const before = await indexOf(node);
      await node.vswitch.stop("ovsdb-server", "SIGKILL");
      await node.vswitch.startNewDatabase();
      await eventually(async () => (await indexOf(node)) !== before, "the bridge to go");
    }

    async function routed(): Promise<SingleNode["node"]> {
      single = await SingleNode.ground({}, "uplink");
      const { node } = single;
      const [router] = routerOn("a");
      await node.namespace.ip(`route add 203.0.113.0/24 via ${router} dev nic0 metric 7 src ${node.addresses[0]}`);
      await node.startAgent();
      return node;
    }

    /** Addresses, with their prefix lengths, and routes. */
    const ownOf = async (node: Node): Promise<readonly string[]> => {
      const addresses = (await node.namespace.run("ip -o addr show dev br-int scope global")).split("\n");
      const words = addresses.map((line) => line.split(/\s+/).slice(1, 4).join(" "));
      return [...words.sort(), ...(await routesOf(node)), await default6Of(node)];
    };

    test.each([
      ["while the agent runs", true],
      ["while it does not", false],
    ])("%s: addresses and routes come back", async (_when, isRunning) => {
      const node = await routed();
      const pod = await node.addPod("a");
      const before = await ownOf(node);
      // One that goes on makes the bridge again before the switch has taken it away.
      if (isRunning) node.agent.signal("SIGSTOP");
      else await node.agent.end("SIGKILL");
      await loseSwitch(node);
      expect(await holdersOf(node)).toEqual([]);
      if (isRunning) node.agent.signal("SIGCONT");
      else await node.startAgent();
      await eventually(async () => Bun.deepEquals(await ownOf(node).catch(() => []), before), "what the node had");
      for (const i of [0, 1] as const) {
        await eventually(() => answers(node.namespace, external[i]), "an answer to the node");
        await eventually(() => answers(pod.namespace, external[i]), "an answer to the pod");
      }
      expect(await holdersOf(node)).toEqual(["br-int"]);
    });

    test("a node that is one of many joins again, which takes its addresses", async () => {
      await using scratch = scratchUntilEnd("pt-nodes-");
      const file = join(scratch.path, "nodes.json");
      writeFileSync(file, JSON.stringify({ nodes: [{ name: "n1", addresses: nodeOn("a", 1), subnets }] }));
      const networks = [{ name: "pods", bridge: "br-int" }];
      const more = { networks, nodes: { registry: { type: "static", file } } };
      single = await SingleNode.ground({ nodeAddresses: undefined }, "uplink", more);
      const { node } = single;
      await node.startAgent();
      const before = await ownOf(node);
      await node.agent.end("SIGKILL");
      await loseSwitch(node);
      await node.startAgent();
      expect(await ownOf(node)).toEqual(before);
      // It has not waited for them either, as for an interface that is still to be configured.
      expect(node.agent.stderr).not.toContain("until the node has joined");
    });

    test("an address that the node got meanwhile is taken as it is, and those of an earlier boot stay away", async () => {
      const node = await routed();
      await node.agent.end("SIGKILL");
      await loseSwitch(node);
      await node.namespace.ip("addr add 192.0.2.77/24 dev nic0");
      await node.startAgent();
      const own = async () => (await ownOf(node)).filter((line) => line.includes("inet"));
      expect(await own()).toEqual([
        expect.stringContaining("192.0.2.77/24"),
        expect.stringContaining(node.addresses[1]),
      ]);
      await node.agent.end("SIGKILL");
      const file = join(node.home.dataDir, "uplink.json");
      writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), bootId: "another" }));
      await loseSwitch(node);
      await node.startAgent();
      expect(await own()).toEqual([]);
    });

    test("an address that somebody takes off the bridge is not put back", async () => {
      const node = await routed();
      await node.namespace.ip(`addr del ${node.addresses[1]}/64 dev br-int`);
      await node.agent.end("SIGKILL");
      await node.startAgent();
      expect((await ownOf(node)).filter((line) => line.includes("inet6"))).toEqual([]);
    });
  });
});

type Node = SingleNode["node"];

/** Interfaces that have one of the node's addresses. */
async function holdersOf({ namespace, addresses }: Node): Promise<readonly string[]> {
  const links: { ifname: string; addr_info: { local: string }[] }[] = JSON.parse(await namespace.run("ip -j addr"));
  return links
    .filter(({ addr_info }) => addr_info.some(({ local }) => addresses.includes(local)))
    .map(({ ifname }) => ifname);
}

async function routesOf({ namespace }: Node): Promise<readonly string[]> {
  const lines = (await namespace.run("ip -4 route")).split("\n").map((line) => line.trim());
  return lines.filter((line) => / dev (nic0|br-int)/.test(line)).sort();
}

const default6Of = async ({ namespace }: Node): Promise<string> =>
  (await namespace.run("ip -6 route show default")).trim();

/** Interfaces, addresses, routes and rules of the node. */
async function hostOf({ namespace }: Node): Promise<readonly string[]> {
  const kernel = namespace.run("nft list tables");
  const addresses: { ifname: string; addr_info: { local: string; scope: string }[] }[] = JSON.parse(
    await namespace.run("ip -j addr"),
  );
  const own = addresses.flatMap(({ ifname, addr_info }) =>
    addr_info.filter(({ scope }) => scope === "global").map(({ local }) => `${ifname} ${local}`),
  );
  const links = addresses.map(({ ifname }) => ifname).filter((name) => name !== "ovs-netdev");
  return [...links.sort(), ...own.sort(), (await kernel).trim(), (await namespace.run("ip -4 route")).trim()];
}

/** ovs-vswitchd takes its interfaces away behind the database. */
async function isAsBefore(node: Node, before: readonly string[]): Promise<void> {
  const links = before.filter((line) => !line.includes(" "));
  await eventually(
    async () => (await hostOf(node)).filter((line) => !line.includes(" ")).join() === links.join(),
    "the end",
  );
  expect(await hostOf(node)).toEqual(before);
}

async function removeKey({ home }: Node, key: string): Promise<void> {
  const config = JSON.parse(await Bun.file(home.configFile).text());
  delete config.ovs[key];
  await Bun.write(home.configFile, JSON.stringify(config));
}
