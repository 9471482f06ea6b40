import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { traceInjected } from "../../operator/trace/inject.ts";
import type { TraceDocument } from "../../shared/documents/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { UdpEar } from "../support/udp-ear.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { startTraceLab, type TraceLab, traceFlowsOn } from "./lab/trace-lab.ts";

const never = new AbortController().signal;

/** Another plugin has given the addresses: the agents know of no other node, and of no other node's pods. */
async function alone(node: LabNode): Promise<void> {
  const subnets = [`10.20.${node.number}.0/24`, `fd20:0:0:${node.number}::/64`];
  node.home.change({ networks: [{ name: "pods", bridge: "br-int", subnets }], nodes: undefined });
  node.changeOvs({ nodeAddresses: node.addresses });
  node.variables = { PIPETTE_NODE_NAME: node.name };
}

/** What the other plugin does: it has the kernel forward, by routes to the pods of the other node. */
async function route({ lab, pods }: TraceLab, verb: "add" | "del"): Promise<void> {
  const [one, two] = [lab.node(1), lab.node(2)];
  for (const { namespace } of [one, two]) namespace.sysctl({ "ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1 });
  const to = (pod: LabPod, by: LabNode): readonly string[] =>
    ([4, 6] as const).map((family, i) => `route ${verb} ${pod.address(family)} via ${by.addresses[i]}`);
  await one.namespace.ip(...[pods.c, pods.closed].flatMap((pod) => to(pod, two)));
  await two.namespace.ip(...[pods.a, pods.b, pods.mute].flatMap((pod) => to(pod, one)));
}

describe.each([
  ["whose registry knows their pods", {}],
  ["that know of themselves alone", { before: alone }],
] as const)("injected packets where another plugin routes, on nodes %s", (_, more) => {
  describeWith("with real switches", ["root", "openvswitch", "nft", "etcd"], () => {
    let cluster: TraceLab;
    beforeAll(async () => {
      compileExecutables();
      cluster = await startTraceLab({ mode: "networkPolicyOnly" }, more);
      await route(cluster, "add");
    }, 120_000);
    afterAll(() => cluster?.[Symbol.asyncDispose]());

    type Wanted = Partial<Parameters<typeof traceInjected>[1]>;
    const inject = (to: string, wanted: Wanted = {}): Promise<TraceDocument> =>
      traceInjected(cluster.source, { from: "shop/a", to, protocol: "udp", port: 53, ...wanted }, never);
    const placesIn = (trace: TraceDocument): readonly string[] =>
      trace.nodes.map(({ node, role }) => `${node} ${role}`);

    test.each([4, 6] as const)(
      "of IPv%i, to a pod of the same node and of the other, which gets none",
      async (family) => {
        const { pods, lab } = cluster;
        expect(await answers(pods.a.namespace, pods.c.address(family))).toBe(true);
        expect((await inject("shop/b", { family })).verdict).toMatchObject({ t: "delivered", node: "n1" });
        using ear = await UdpEar.open(pods.c.namespace, pods.c.address(family), 53);
        const trace = await inject("shop/c", { family });
        expect(trace.verdict).toMatchObject({
          t: "delivered",
          node: "n2",
          text: expect.stringContaining("pod shop/c"),
        });
        expect(placesIn(trace)).toEqual(["n1 source", "n2 destination"]);
        expect(trace.nodes[0]?.steps.at(-1)).toMatchObject({
          toNode: "n2",
          text: "given to this node's kernel, which routes it to node n2 as another plugin has said",
        });
        expect(trace.nodes[1]?.steps[0]).toMatchObject({
          action: "received",
          text: expect.stringContaining("by the node's kernel"),
        });
        expect(trace.remarks).toEqual([]);
        // What comes now is heard: the ear has been open.
        await pods.a.namespace.within(async () => {
          const socket = await Bun.udpSocket({ hostname: pods.a.address(family) });
          socket.send("heard", 53, pods.c.address(family));
          socket.close();
        });
        await expect.poll(() => ear.heard).toBe(1);
        for (const node of lab.nodes) expect(await traceFlowsOn(node)).toEqual([]);
      },
    );

    test("a policy of the receiver drops it there, one of the sender here", async () => {
      const closed = await inject("shop/closed", { protocol: "tcp", port: 81 });
      expect(closed.verdict).toMatchObject({ t: "dropped", node: "n2", policies: ["x/web-only"] });
      const mute = await inject("shop/c", { from: "shop/mute" });
      expect(mute.verdict).toMatchObject({ t: "dropped", node: "n1", policies: ["x/quiet"] });
    });

    test("what nobody is known to have ends at the node's kernel, and is not sent", async () => {
      const trace = await inject("198.51.100.1");
      expect(trace.verdict).toMatchObject({
        t: "forwarded",
        node: "n1",
        text: "goes on to the next node: given to this node's kernel, which routes as another plugin has said",
      });
    });

    test("a route that the other plugin lacks loses it between the nodes", async () => {
      await route(cluster, "del");
      // By the default route it goes to the router, which has none.
      const trace = await inject("shop/c");
      expect(trace.verdict).toMatchObject({
        t: "lost",
        node: "n1",
        text: expect.stringContaining("node n2 has not seen it"),
      });
      expect(trace.lastSeenAt).toMatchObject({ node: "n1", table: "Output" });
    });
  });
});
