import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { external } from "./lab/addresses.ts";
import { unansweredPings } from "./lab/reach.ts";
import { failedConnections } from "./lab/tcp.ts";
import { gateways, SingleNode } from "./single-node.ts";

describeWith("pods on one node with Open vSwitch", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;

  beforeAll(async () => {
    compileExecutables();
    single = await SingleNode.start();
  }, 120_000);
  afterAll(() => single?.[Symbol.asyncDispose]());

  test("the first packet passes between pods, to the gateway and to the world outside", async () => {
    const { node, underlay } = single;
    const [a, b] = await Promise.all([node.addPod("a"), node.addPod("b")]);
    const places = [a, b].map(({ name, namespace, addresses }) => ({ name, namespace, addresses }));
    const gateway = { name: "gateway", namespace: node.namespace, addresses: [...gateways] };
    const outside = { name: "outside", namespace: underlay.namespace, addresses: [...external] };
    const self = { name: "node", namespace: node.namespace, addresses: [...node.addresses] };
    expect(await unansweredPings(places, [...places, gateway, self, outside])).toEqual([]);
    expect(await unansweredPings([gateway], places)).toEqual([]);
    expect(await failedConnections(places)).toEqual([]);
  });
});
