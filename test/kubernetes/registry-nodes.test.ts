import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { executables } from "../conformance/plugin.ts";
import { nodeOn } from "../overlay/lab/addresses.ts";
import { LabNode } from "../overlay/lab/lab-node.ts";
import type { LabPod } from "../overlay/lab/lab-pod.ts";
import { unansweredPings } from "../overlay/lab/reach.ts";
import { Underlay } from "../overlay/lab/underlay.ts";
import { warmTunnels } from "../overlay/lab/warm-tunnels.ts";
import { HoldingProxy } from "../registry/holding-proxy.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, podCidrs, removeNode, shipped } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

const needs = [
  ...(["linux", "root", "nft", "openvswitch", "etcd", "openssl"] as const),
  ...(["kube-apiserver", "kube-controller-manager", "kubectl"] as const),
];

describeWith("nodes on Open vSwitch that know each other by a real API server", needs, () => {
  const made = new AsyncDisposableStack();
  let server: ApiServer;
  let underlay: Underlay;
  let parent: string;
  const nodes: LabNode[] = [];

  beforeAll(async () => {
    parent = made.use(scratchDir()).path;
    server = made.use(await ApiServer.start({ podCidrs: "10.80.0.0/16" }));
    await shipped(server);
    underlay = made.use(Underlay.create());
    await underlay.start();
    for (const number of [1, 2]) await join(number);
    await warmTunnels(nodes);
  });
  afterAll(() => made.disposeAsync());

  /** A machine whose kubelet has registered it, with a running agent. */
  async function join(number: number): Promise<LabNode> {
    const name = `n${number}`;
    await addNode(server, name, nodeOn("a", number)[0]);
    const token = `${parent}/${name}.token`;
    writeFileSync(token, await agentToken(server, name), { mode: 0o600 });
    const registry = { type: "kubernetes", server: server.url, ca: server.ca, token };
    const config = { ovs: { mode: "encap" }, nodes: { registry, addresses: [nodeOn("a", number)[0]] } };
    const spec = { number, link: "a", nic: "outer-bridge", executables, parent, config } as const;
    const node = made.use(await LabNode.start(spec, underlay));
    made.use(await HoldingProxy.into(node.namespace.within, server.url));
    await node.startAgent();
    nodes.push(node);
    return node;
  }
  const known = (at: LabNode, others: number) =>
    eventually(async () => (await at.home.status()).cluster.includes(` ${others} others`), `${others} others`);
  const reachEachOther = (pods: readonly LabPod[]) =>
    eventually(async () => (await unansweredPings(pods)).length === 0, "every pod to reach every other");

  test("pods reach each other; a node that comes is reached, one that goes is not sent to any more", async () => {
    const [first, second] = nodes as [LabNode, LabNode];
    const pods = [await first.addPod("a"), await second.addPod("b")];
    await reachEachOther(pods);
    const third = await join(3);
    await Promise.all([known(first, 2), known(second, 2)]);
    await warmTunnels(nodes);
    pods.push(await third.addPod("c"));
    await reachEachOther(pods);

    const [cidr = ""] = await podCidrs(server, "n3");
    const network = cidr.slice(0, -"0/24".length);
    const flowsTo = async () => (await first.flows()).filter((flow) => flow.includes(network));
    expect(await flowsTo()).not.toEqual([]);
    await third.home[Symbol.asyncDispose]();
    await removeNode(server, "n3");
    await Promise.all([known(first, 1), known(second, 1)]);
    await eventually(async () => (await flowsTo()).length === 0, "no flow to the node that is gone");
    await reachEachOther(pods.slice(0, 2));
  });

  test("without the API server pods come, go and reach each other", async () => {
    const [first, second] = nodes as [LabNode, LabNode];
    await server.signal("SIGKILL");
    const pods = [await first.addPod("d"), await second.addPod("e")];
    await reachEachOther(pods);
    await server.startAgain();
    await Promise.all(pods.map((pod) => pod.remove()));
  });

  test("a node with other pod CIDRs is reached in these once its pods are gone", async () => {
    const [first, second] = nodes as [LabNode, LabNode];
    const stay = [...first.pods][0] as LabPod;
    const [before = ""] = await podCidrs(server, "n2");
    for (const pod of [...second.pods]) await pod.remove();
    await removeNode(server, "n2");
    await addNode(server, "filler", "172.30.0.99");
    await podCidrs(server, "filler");
    await addNode(server, "n2", nodeOn("a", 2)[0]);
    const [after = ""] = await podCidrs(server, "n2");
    expect(after).not.toBe(before);
    // It ends, for whoever keeps it to start it anew.
    await second.agent.ended();
    await second.startAgent();
    const pod = await second.addPod("f");
    expect(pod.address(4)).toContain(after.slice(0, -"0/24".length));
    await reachEachOther([stay, pod]);
  });
});
