import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { addHostPort } from "../support/host-port.ts";
import { describeWith } from "../support/requires.ts";
import { Conversation } from "./lab/conversation.ts";
import { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { seenBy, TcpServer, tcpPort } from "./lab/tcp.ts";
import { routesOf } from "./lab/traces.ts";

/** Nodes with kernel bridges: two on one link, one behind the router. */
describeWith("a cluster of kernel bridges", ["root", "nft", "etcd", "cni-plugins"], () => {
  const open = new AsyncDisposableStack();
  let lab: Lab;
  let node: LabNode;
  let web: LabPod;
  let far: LabPod;
  let beyond: LabPod;
  /** Of the node on the link. */
  let routes: readonly string[];

  beforeAll(async () => {
    compileExecutables();
    lab = open.use(await Lab.start({ nodes: ["a", "a", "b"], dataPath: "bridge" }));
    node = lab.node(1);
    [web, far, beyond] = (await Promise.all(lab.nodes.map((each) => each.addPod("web")))) as [LabPod, LabPod, LabPod];
    routes = await routesOf(node);
  });
  afterAll(() => open.disposeAsync());

  /** Both ways, and each by its own address. */
  async function expectTogether(pods: readonly [LabPod, LabPod] = [web, far]): Promise<void> {
    for (const [from, to] of [pods, pods.toReversed()] as [LabPod, LabPod][]) {
      using _server = new TcpServer(to.namespace);
      for (const address of to.addresses) expect(from.addresses).toContain(await seenBy(from.namespace, address));
    }
  }

  const shortcomings = async (): Promise<readonly string[]> => (await node.home.status()).shortcomings;

  test("what pods on one link say to each other has their own addresses, and to other nodes their node's", async () => {
    await expectTogether();
    using _server = new TcpServer(far.node.namespace);
    for (const address of far.node.addresses) expect(node.addresses).toContain(await seenBy(web.namespace, address));
  });

  test("a host port of another node is answered, to pods and to nodes", async () => {
    const [{ address }] = far.result.ips as [{ address: string }];
    await addHostPort(far.node.namespace, {
      netns: far.namespace.path,
      address,
      hostPort: 8080,
      containerPort: tcpPort,
    });
    using _server = new TcpServer(far.namespace);
    for (const from of [web.namespace, node.namespace])
      expect(await seenBy(from, far.node.addresses[0], { port: 8080 })).toBe(node.addresses[0]);
  });

  test("of a node behind the router it says that, until somebody has made a route", async () => {
    const [sentence = "", ...more] = await shortcomings();
    expect(more).toEqual([]);
    expect(sentence).toContain('routes to the pods of "n3"');
    expect(sentence).toContain('"dataPath: ovs" with "mode: hybrid"');
    expect(routes.some((route) => sentence.includes(route))).toBe(false);
    expect(await node.pipette("status", "--socket", node.home.socket)).toContain(`shortcoming: ${sentence}`);
    const words = [`${node.executables}/pipette`, "doctor", "--once", "--json", "--config", node.home.configFile];
    expect((await node.namespace.start(words).ended).stdout).toContain('of \\"n3\\"');
    // As it tells people to.
    for (const [subnet, router] of subnetsOf(beyond).map((each, i) => [each, ["172.30.0.254", "fd30:a::fe"][i]])) {
      await node.namespace.ip(`route add ${subnet} via ${router}`);
      const [v4, v6] = beyond.node.addresses;
      await lab.underlay.namespace.ip(`route add ${subnet} via ${subnet?.includes(":") ? v6 : v4}`);
    }
    for (const subnet of subnetsOf(web)) {
      const [v4, v6] = node.addresses;
      await lab.underlay.namespace.ip(`route add ${subnet} via ${subnet.includes(":") ? v6 : v4}`);
    }
    expect(await shortcomings()).toEqual([]);
    await expectTogether([web, beyond]);
  });

  test("connections go on while the agent is killed, and it finds its routes again", async () => {
    using talk = await Conversation.start(web.namespace, far.namespace, far.address(6));
    await node.agent.end("SIGKILL");
    await talk.goesOn();
    // By somebody while nobody looks: one of its routes gone, and one of nobody's.
    await node.namespace.ip(`route del ${routes[0]}`, "route add 10.99.0.0/24 via 172.30.0.2 proto 112");
    await node.startAgent();
    expect(await routesOf(node)).toEqual(routes);
    await talk.goesOn();
    await expectTogether();
  });

  test("it starts without the registry, with the nodes that it knows", async () => {
    await lab.etcd.signal(0, "SIGKILL");
    await node.agent.end();
    await node.namespace.ip(...routes.map((route) => `route del ${route}`));
    await node.startAgent();
    expect((await node.home.status()).cluster).toContain("from what was last known");
    expect(await routesOf(node)).toEqual(routes);
    await expectTogether();
    await lab.etcd.startMember(0);
  });

  test("a node that comes is reached, and one that leaves has no route any more", async () => {
    const fourth = await lab.addNode("a");
    await fourth.startAgent();
    const pod = await fourth.addPod("late");
    await eventually(async () => (await routesOf(node)).length === routes.length + 2, "routes to the new node");
    await lab.hearsOthers(fourth);
    await expectTogether([web, pod]);
    await pod.remove();
    await fourth.agent.end();
    await node.pipette("nodes", "release", fourth.name, "--force", "--config", node.home.configFile);
    await expect.poll(() => routesOf(node), { timeout: 10_000 }).toEqual(routes);
    await lab.removeNode(fourth);
    await expectTogether();
  });

  test("a removal says what it leaves of them", async () => {
    const words = ["uninstall", "--dry-run", "--with-pods", "--no-service", "--config", node.home.configFile];
    expect(await node.pipette(...words)).toMatch(/routes to other nodes' pods.*ip route flush proto 112/s);
  });

  test('what it wanted of other nodes goes with the section "nodes"', async () => {
    await node.agent.end();
    const alone = { nodes: undefined, networks: [{ name: "pods", bridge: "pipette0", subnets: subnetsOf(web) }] };
    node.home.change(alone);
    await node.startAgent();
    expect(await routesOf(node)).toEqual([]);
    // Pods stay, and are hidden behind their node again.
    using _server = new TcpServer(far.node.namespace);
    expect(await seenBy(web.namespace, far.node.addresses[0])).toBe(node.addresses[0]);
    expect(await answers(node.namespace, web.address(6))).toBe(true);
  });
});

/** As the lab's registry leases them. */
const subnetsOf = ({ addresses }: LabPod): readonly string[] =>
  addresses.map((address) =>
    address.includes(":") ? address.replace(/::.*/, "::/64") : address.replace(/\d+$/, "0/24"),
  );
