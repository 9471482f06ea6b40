import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { NodePolicies } from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { egress, ingress, pod as named, ports } from "../fakes/policy-world.ts";
import type { World } from "../policies/node-policies.ts";
import { ownerOf, type PolicedNode, type Probe, ProbedPods } from "../policies/probed-pods.ts";
import { heardAfter, TcpTalk, UdpTalk } from "../policies/talks.ts";
import { forgetNeighbours } from "../support/forget-neighbours.ts";
import { EtherType, ethernet, ipv4, Protocol, udp } from "../support/frames/frame.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName } from "./bridge-fixture.ts";
import { BridgeNodes } from "./policed-bridges.ts";

function podOf(name: string, number: number): Pod {
  const pod = readPod({
    metadata: { namespace: "x", name, uid: name, labels: { pod: name } },
    spec: { nodeName: "n1" },
    status: { podIPs: [{ ip: `10.77.0.${number}` }, { ip: `fd77::${number}` }] },
  });
  if (pod === undefined) throw new Error("not a pod");
  return pod;
}

const [a, b, c, late] = [podOf("a", 10), podOf("b", 11), podOf("c", 12), podOf("late", 13)];
const of = (name: string, spec: ApiObject): ApiObject => ({ ...spec, podSelector: { matchLabels: { pod: name } } });

/** Each policy keeps its rules' names as long as it is at its place. */
function worldWith(...specs: (ApiObject | undefined)[]): World {
  const policies = specs.flatMap((spec, i) => {
    const policy = spec && readPolicy({ metadata: { namespace: "x", name: `p${i}`, uid: `p${i}` }, spec });
    return policy === undefined ? [] : [policy];
  });
  return { pods: [a, b, c, late], policies, namespaces: new Map([["x", {}]]) };
}

describeWith("network policies on a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let bridges: BridgeNodes;
  let node: PolicedNode;
  let pods: ProbedPods;

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-np-"));
    bridges = stack.use(await BridgeNodes.start(sandbox, ["n1"]));
    [node] = bridges.nodes as [PolicedNode];
    pods = stack.use(new ProbedPods(bridges.nodes));
    for (const pod of [a, b, c]) await pods.attach(sandbox, pod);
  });
  beforeEach(() => pods.enforce(worldWith()));
  afterAll(() => stack.disposeAsync());

  const tcp = (from: string, to: string, port = 80): Probe => ({
    from: `x/${from}`,
    to: `x/${to}`,
    protocol: "TCP",
    port,
  });
  const arrived = async (...probes: Probe[]): Promise<readonly boolean[]> => {
    const all = await pods.send(probes, () => false);
    return probes.map((probe) => all.has(probe));
  };
  const talk = (from: string, to: string, port: number) => {
    const [client, server] = [pods.at(`x/${from}`), pods.at(`x/${to}`)];
    return { from: client.netns, to: server.netns, address: `10.77.0.${server.pod.name === "b" ? 11 : 10}`, port };
  };
  const denied = async (): Promise<number> => {
    const { denied: counts = [] } = (await node.dataPath.policies?.counts()) ?? {};
    return counts.reduce((sum, { packets }) => sum + packets, 0);
  };

  test("an open connection obeys a change, and others lose no packet", async () => {
    const fromA = ingress({ from: [named("a")], ...ports({ port: 80 }, { port: 80, protocol: "UDP" }) });
    const fromC = ingress({ from: [named("c")] }, { from: [named("a")], ...ports({ port: 81 }) });
    await pods.enforce(worldWith(of("b", fromA), of("b", fromC)));
    using talks = new DisposableStack();
    const [cut, other, third] = [
      talks.use(await TcpTalk.start(talk("a", "b", 80))),
      talks.use(await TcpTalk.start(talk("a", "b", 81))),
      talks.use(await TcpTalk.start(talk("c", "b", 82))),
    ];
    const [cutUdp, datagrams] = [
      talks.use(await UdpTalk.start(talk("a", "b", 80))),
      talks.use(await UdpTalk.start(talk("c", "b", 83))),
    ];
    const before = await denied();
    await pods.enforce(worldWith(undefined, of("b", fromC)));
    expect(await heardAfter(cut, 100, 900)).toBe(0);
    expect(await heardAfter(cutUdp, 0, 100)).toBe(0);
    await other.goesOn();
    await third.goesOn();
    expect(await datagrams.lost()).toBe(0);
    expect(await denied()).toBeGreaterThan(before);
    // Allowed again it goes on by itself: nobody has reset it.
    await pods.enforce(worldWith(of("b", fromA), of("b", fromC)));
    await cut.goesOn();
  });

  test("a connection lives as long as any rule allows it", async () => {
    const [one, two] = [ingress({ from: [named("a")] }), ingress(ports({ port: 80 }, { port: 80, protocol: "UDP" }))];
    await pods.enforce(worldWith(of("b", one)));
    using talks = new DisposableStack();
    const stream = talks.use(await TcpTalk.start(talk("a", "b", 80)));
    const datagrams = talks.use(await UdpTalk.start(talk("a", "b", 80)));
    // Each of the rules alone, both, and none that isolates.
    for (const specs of [[of("b", two)], [of("b", one), of("b", two)], [of("b", one)], [], [of("a", egress({}))]]) {
      await pods.enforce(worldWith(...specs));
      await stream.goesOn();
    }
    expect(await datagrams.lost()).toBe(0);
  });

  test("an owner without an interface is closed from its first packet, before its policies are known", async () => {
    const isolated = new Map([
      [ownerKey(ownerOf(late)), { owner: ownerOf(late), directions: ["ingress", "egress"], by: [] }],
    ] as const);
    const wanted: NodePolicies = { rules: new Map(), isolated };
    await pods.enforceAt(node, wanted);
    await pods.attach(sandbox, late);
    const both = [tcp("a", "late"), tcp("late", "a"), tcp("a", "b")];
    expect(await arrived(...both)).toEqual([false, false, true]);
    for (const address of ["10.77.0.13", "fd77::13"]) expect(await sandbox.ping(undefined, address)).toBe(true);
    await pods.enforce(worldWith(of("late", ingress({ from: [named("a")] }))));
    expect(await arrived(...both)).toEqual([true, true, true]);
    // Its address may be another's afterwards.
    await node.dataPath.detach(ownerOf(late));
    expect(await sandbox.node("nft list map inet pipette-policies-ptc0 to4")).not.toContain("10.77.0.13");
    expect(await node.dataPath.policies?.differences()).toEqual([]);
  });

  test("the node reaches its own pods, and they it only as they may", async () => {
    expect(await sandbox.ping(pods.at("x/a").netns, "10.77.0.1")).toBe(true);
    await pods.enforce(worldWith({ podSelector: {}, policyTypes: ["Ingress", "Egress"] }));
    for (const address of ["10.77.0.10", "fd77::11"]) expect(await sandbox.ping(undefined, address)).toBe(true);
    for (const address of ["10.77.0.1", "fd77::1", "10.77.0.11"])
      expect.soft(await sandbox.ping(pods.at("x/a").netns, address, "one"), address).toBe(false);
    await pods.enforce(worldWith(egress({ to: [{ ipBlock: { cidr: "10.77.0.1/32" } }] })));
    expect(await sandbox.ping(pods.at("x/a").netns, "10.77.0.1")).toBe(true);
  });

  test("what a service sends back to its own client is the pod's own affair", async () => {
    await sandbox.nodeWith(
      "nft -f -",
      "table ip itself { chain pre { type nat hook prerouting priority dstnat; ip daddr 10.96.0.1 dnat to 10.77.0.10; }; }\n",
    );
    await pods.enforce(worldWith({ podSelector: {}, policyTypes: ["Ingress", "Egress"] }));
    expect(await arrived({ ...tcp("a", "a"), service: "10.96.0.1" })).toEqual([true]);
    await sandbox.node("nft delete table ip itself");
  });

  test("an error about a connection that is allowed arrives, also where nothing else may", async () => {
    await pods.enforce(worldWith(of("a", ingress()), of("b", egress())));
    const [from, to] = [pods.at("x/a"), pods.at("x/b")];
    const ends = { from: "10.77.0.10", to: "10.77.0.11" };
    from.wire.received();
    // Nobody listens at the port, so the other's kernel says so.
    const packet = ipv4(ends, Protocol.udp, udp(ends, { from: 7, to: 9 }, [1]));
    from.wire.send(ethernet({ from: from.mac, to: to.mac }, EtherType.ipv4, packet));
    await expect
      .poll(() => from.wire.received().some((frame) => frame[23] === 1 && frame[34] === 3 && frame[35] === 3))
      .toBe(true);
  });

  test("what is not sent to one pod alone stays away from isolated ones", async () => {
    const [from, to] = [pods.at("x/a"), pods.at("x/b")];
    const frames = (mac: string, address: string, mark: string): Uint8Array => {
      const ends = { from: "10.77.0.10", to: address };
      const packet = ipv4(ends, Protocol.udp, udp(ends, { from: 1, to: 9 }, new TextEncoder().encode(mark)));
      return ethernet({ from: from.mac, to: mac }, EtherType.ipv4, packet);
    };
    const all = [
      frames("ff:ff:ff:ff:ff:ff", "10.77.0.11", "one by broadcast"),
      frames("ff:ff:ff:ff:ff:ff", "255.255.255.255", "broadcast"),
      frames("01:00:5e:00:00:fb", "224.0.0.251", "multicast"),
    ];
    const heard = async (): Promise<number> => {
      to.wire.received();
      for (const frame of all) from.wire.send(frame);
      await sandbox.ping(pods.at("x/c").netns, "10.77.0.1");
      const texts = to.wire.received().map((frame) => Buffer.from(frame).toString("latin1"));
      return texts.filter((text) => /broadcast|multicast/.test(text)).length;
    };
    expect(await heard()).toBe(3);
    await pods.enforce(worldWith(of("b", ingress())));
    expect(await heard()).toBe(0);
    await pods.enforce(worldWith(of("a", egress())));
    expect(await heard()).toBe(0);
    // Who has an address is still asked and answered.
    await forgetNeighbours({ run: (command) => sandbox.pod(from.netns, command) }, "dev eth0");
    await sandbox.pod(from.netns, "ping -n -c 1 -W 1 10.77.0.11").catch(() => undefined);
    await sandbox.pod(from.netns, "ping -n -c 1 -W 1 fd77::11").catch(() => undefined);
    expect(await sandbox.pod(from.netns, "ip neigh show 10.77.0.11 dev eth0")).toContain(to.mac);
    expect(await sandbox.pod(from.netns, "ip neigh show fd77::11 dev eth0")).toContain(to.mac);
  });

  test("no packet that the node sends on is followed by a redirect", async () => {
    const { wire, netns } = pods.at("x/a");
    wire.received();
    for (const address of ["10.77.0.11", "fd77::11"]) expect(await sandbox.ping(netns, address)).toBe(true);
    const isRedirect = (frame: Uint8Array): boolean =>
      (frame[23] === 1 && frame[34] === 5) || (frame[20] === 58 && frame[54] === 137);
    expect(wire.received().filter(isRedirect)).toEqual([]);
  });

  test.each([
    ["an element", "delete element inet pipette-policies-ptc0 to4 { 10.77.0.11 }"],
    ["a chain's rules", "flush chain inet pipette-policies-ptc0 ingress"],
    ["the chain that leads to it", "flush chain inet pipette-policies-ptc0 forward-ingress"],
    ["the way past the bridge", `flush chain bridge pipette-${bridgeName} policies-route`],
    ["everything", "flush ruleset"],
  ])("what somebody has deleted is seen and put back: %s", async (_what, command) => {
    await pods.enforce(worldWith(of("b", ingress({ from: [named("a")] }))));
    await sandbox.node(`nft ${command}`);
    expect(await node.dataPath.policies?.differences()).not.toEqual([]);
    await node.dataPath.start();
    expect(await node.dataPath.policies?.differences()).toEqual([]);
    expect(await node.dataPath.problems()).toEqual([]);
    expect(await arrived(tcp("a", "b"), tcp("c", "b"))).toEqual([true, false]);
  });
});
