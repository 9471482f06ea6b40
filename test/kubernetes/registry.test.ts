import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, podCidrs, RegistryNode, registryNeeds, removeNode, setAddress, shipped } from "./registry-node.ts";

describeWith("nodes of a real API server, with pod CIDRs of both families from its controller", registryNeeds, () => {
  let server: ApiServer;
  let node: RegistryNode;

  beforeAll(async () => {
    server = await ApiServer.start({ podCidrs: "10.80.0.0/16,fd80::/56" });
    await shipped(server);
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  afterEach(() => node?.[Symbol.asyncDispose]());

  test("a node waits for its Node, joins with what the controller gives it, and notes its MAC", async () => {
    node = await RegistryNode.create(server, "here");
    const agent = node.home.spawn();
    const waiting = await agent.logged(({ message }) => message === "waiting to join");
    expect(waiting["error"]).toContain('404: nodes "here" not found');
    await addNode(server, "here", node.address);
    await agent.logged(({ message }) => message === "ready");
    const cidrs = await podCidrs(server, "here");
    expect(cidrs).toEqual([expect.stringMatching(/^10\.80\.\d+\.0\/24$/), expect.stringMatching(/^fd80:.*\/64$/)]);
    expect(await node.cluster()).toContain(`node here at ${node.address} with ${cidrs.join(", ")}, 0 others`);
    const network = (cidrs[0] ?? "").slice(0, -"0/24".length);
    expect(await node.addPod("one")).toEqual([expect.stringContaining(network), expect.stringMatching(/^fd80:/)]);
    const { body } = await server.ask("GET", "/api/v1/nodes/here");
    expect(body["metadata"]).toMatchObject({ annotations: { "node.pipette.io/mac-address": node.mac } });
  });

  test("nodes that come, go, change their address, their name and their pod CIDRs are heard of", async () => {
    node = await RegistryNode.create(server, "here2");
    await addNode(server, "here2", node.address);
    await removeNode(server, "here");
    await node.home.start();
    await node.others(0);
    await addNode(server, "there", "192.0.2.2");
    const cidrs = await podCidrs(server, "there");
    const listed = (line: string) => eventually(async () => (await node.nodesList()).includes(line), line);
    await node.others(1);
    expect(await node.nodesList()).toMatch(new RegExp(`^there +ready +192\\.0\\.2\\.2 +${cidrs[0]}`, "m"));
    await setAddress(server, "there", "192.0.2.3");
    await listed("192.0.2.3");

    // Another name for the same machine: Kubernetes has no renaming, and the new Node gets other pod CIDRs.
    await removeNode(server, "there");
    await addNode(server, "renamed", "192.0.2.3");
    expect(await podCidrs(server, "renamed")).not.toEqual(cidrs);
    await listed("renamed");
    expect(await node.nodesList()).not.toContain("there");
    await node.others(1);

    // The same name with other pod CIDRs: what a Node has stays, so it is another Node.
    const before = await podCidrs(server, "renamed");
    await removeNode(server, "renamed");
    await addNode(server, "filler", "192.0.2.4");
    await podCidrs(server, "filler");
    await addNode(server, "renamed", "192.0.2.3");
    const after = await podCidrs(server, "renamed");
    expect(after).not.toEqual(before);
    await listed(`${after[0]}`);
    await node.others(2);
    for (const name of ["renamed", "filler"]) await removeNode(server, name);
    await node.others(0);
  });

  test("a node whose Node was made anew keeps its pods, gives no address outside its pod CIDRs, and joins again", async () => {
    node = await RegistryNode.create(server, "again");
    await addNode(server, "again", node.address);
    const agent = await node.home.start();
    const [before] = await node.addPod("one");
    await removeNode(server, "again");
    const problem = (is: RegExp) =>
      eventually(async () => (await node.home.status()).problems.some(({ message }) => is.test(message)), `${is}`);
    await problem(/has no node "again" any more/);
    await addNode(server, "filler2", "192.0.2.4");
    await podCidrs(server, "filler2");
    await addNode(server, "again", node.address);
    const [after = ""] = await podCidrs(server, "again");
    await problem(new RegExp(after));
    expect((await node.addPod("one"))[0]).toBe(before);
    await expect(node.addPod("two")).rejects.toThrow(/^11: .*wanted this node's own subnet/);
    await node.removePod("one");
    expect(await agent.ended()).toBe(1);
    await node.home.start();
    expect((await node.addPod("two"))[0]).toContain(after.slice(0, -"0/24".length));
    for (const name of ["again", "filler2"]) await removeNode(server, name);
  });
});
