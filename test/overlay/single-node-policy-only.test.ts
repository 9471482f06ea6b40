import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { answers, unansweredPings } from "./lab/reach.ts";
import { gateways, SingleNode } from "./single-node.ts";

describeWith("pods whose packets another plugin routes", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;

  beforeAll(async () => {
    compileExecutables();
    single = await SingleNode.start({ mode: "networkPolicyOnly" });
  });
  afterAll(() => single?.[Symbol.asyncDispose]());

  test("reach each other and the node through the node's kernel, and the gateway has no address", async () => {
    const { node } = single;
    // ARP for any gateway is answered by the switch; an IPv6 one is the other plugin's.
    await node.namespace.ip(`addr add ${gateways[1]}/128 dev pipette-gw0 nodad`);
    const [a, b] = await Promise.all([node.addPod("a"), node.addPod("b")]);
    const places = [a, b].map(({ name, namespace, addresses }) => ({ name, namespace, addresses }));
    const itself = { name: "node", namespace: node.namespace, addresses: [...node.addresses] };
    expect(await unansweredPings([...places, itself])).toEqual([]);
    expect(await node.namespace.run("ip -4 addr show pipette-gw0")).toBe("");
    expect(await answers(a.namespace, node.addresses[0], { packetBytes: 1500 })).toBe(true);
    await b.remove();
    const routes = (): Promise<string> => node.namespace.run("ip route show dev pipette-gw0");
    await eventually(async () => !(await routes()).includes(b.address(4)), "the end of b's route");
    expect(await routes()).toContain(a.address(4));
    expect(await node.namespace.run("nft list table inet pipette-pipette-gw0")).not.toContain("masquerade");
    await node.agent.end("SIGKILL");
    await node.startAgent();
    expect(await answers(node.namespace, a.address(6))).toBe(true);
    await a.check();
  });
});
