import { expect, test } from "vitest";
import { external } from "../../overlay/lab/addresses.ts";
import { type Place, unansweredPings } from "../../overlay/lab/reach.ts";
import { failedConnections } from "../../overlay/lab/tcp.ts";
import { eventually } from "../../support/agent-process.ts";
import type { Cluster } from "./cluster.ts";
import { nodePlace, placeOf, podsOf } from "./cluster-pods.ts";
import { httpPage } from "./http-page.ts";
import { deployment, service } from "./workload.ts";

const nodePort = 30_080;
const hostPort = 18_080;
export const replicas = 20;

/** A Deployment of twenty pods, which the scenarios after this one need, and everything that packets may want of it. */
export function allWays(cluster: () => Cluster): void {
  const beyond = (): Place => ({
    name: "external",
    namespace: cluster().underlay.namespace,
    addresses: external,
  });

  test("twenty pods come, each with addresses of its node's block", async () => {
    await cluster().plane.apply(deployment("web", { replicas, lingers: true }), service("web", nodePort));
    await cluster().rolledOut("web");
    const pods = await podsOf(cluster(), "web");
    expect(new Set(pods.flatMap(({ addresses }) => addresses)).size).toBe(2 * replicas);
    for (const { node, addresses } of pods) {
      const blocks = {
        n1: [/^10\.10\.0\./, /^fd10::\w/],
        n2: [/^10\.10\.200\./, /^fd10:0:0:c8::/],
        n3: [/^10\.10\.201\./, /^fd10:0:0:c9::/],
      }[node];
      for (const [i, block] of (blocks ?? []).entries()) expect(addresses[i]).toMatch(block);
    }
    expect(new Set(pods.map(({ node }) => node)).size).toBe(cluster().nodes.length);
  });

  test("pods, nodes and the world reach each other, under the right addresses", async () => {
    const pods = await podsOf(cluster(), "web");
    const some = cluster().nodes.flatMap(({ name: node }) => pods.filter((pod) => pod.node === node).slice(0, 2));
    const places = [
      ...(await Promise.all(some.map((pod) => placeOf(cluster(), pod)))),
      ...(await Promise.all(cluster().nodes.map((node) => nodePlace(cluster(), node)))),
    ];
    // A switch in user space drops the first packets to an end of a tunnel whose MAC it does not know yet.
    await unansweredPings(places);
    expect(await unansweredPings(places, [...places, beyond()])).toEqual([]);
    expect(await failedConnections(places, [...places, beyond()])).toEqual([]);
  });

  test("services, node ports and host ports lead to pods of all nodes, in both families", async () => {
    const { plane, nodes, underlay } = cluster();
    await plane.apply(deployment("published", { replicas: 1, node: "n1", hostPort }));
    await cluster().rolledOut("published");
    const { spec } = await plane.get<{ spec: { clusterIPs: string[] } }>("service web");
    const pods = await podsOf(cluster(), "web");
    const names = pods.map(({ name }) => name);
    const ends = nodes.flatMap(({ name: node }) => pods.filter((pod) => pod.node === node).slice(0, 1));
    const callers = await Promise.all(ends.map((pod) => placeOf(cluster(), pod)));
    // Each kube-proxy hears of the service by itself.
    for (const { namespace } of nodes)
      for (const address of spec.clusterIPs)
        await eventually(() => httpPage(namespace, address, 80).catch(() => undefined), "the service's first page");
    for (const { namespace } of [...callers, ...nodes])
      for (const address of spec.clusterIPs) {
        const answers = await Promise.all(Array.from({ length: 12 }, () => httpPage(namespace, address, 80)));
        expect(answers.filter((name) => !names.includes(name))).toEqual([]);
        expect(new Set(answers).size).toBeGreaterThan(1);
      }
    const [published] = await podsOf(cluster(), "published");
    for (const node of nodes)
      for (const address of node.addresses)
        expect(names).toContain(await httpPage(underlay.namespace, address, nodePort));
    for (const { namespace } of [underlay, ...callers])
      for (const address of nodes[0]?.addresses ?? [])
        expect(await httpPage(namespace, address, hostPort)).toBe(published?.name);
    await plane.kubectl("delete deployment published --wait=false");
  });
}
