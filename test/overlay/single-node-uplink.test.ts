import { afterEach, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { external, routerOn } from "./lab/addresses.ts";
import { guardKernel } from "./lab/kernel-guard.ts";
import { answers, unansweredPings } from "./lab/reach.ts";
import { seenBy, TcpServer } from "./lab/tcp.ts";
import { SingleNode } from "./single-node.ts";

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
    await guardKernel(node.namespace, ["nic0"]);
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
    const cleanUp = (): Promise<string> => node.pipette("agent", "--config", node.home.configFile, "--cleanup");
    await expect(cleanUp()).rejects.toThrow(/agent.*running|lock|held/i);
    await node.agent.end();
    await cleanUp();
    await isAsBefore(node, before);
    await guardKernel(node.namespace, ["nic0"]);
    expect(await answers(node.namespace, external[0])).toBe(true);
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
