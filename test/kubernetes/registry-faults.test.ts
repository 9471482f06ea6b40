import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type AgentProcess, eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, podCidrs, RegistryNode, registryNeeds, removeNode, shipped } from "./registry-node.ts";

describeWith("an agent whose API server fails it, a real one", registryNeeds, () => {
  let server: ApiServer;
  let node: RegistryNode;
  let agent: AgentProcess;
  let pods = 0;

  beforeAll(async () => {
    server = await ApiServer.start({ podCidrs: "10.80.0.0/16" });
    await shipped(server);
    node = await RegistryNode.create(server, "here");
    await addNode(server, "here", node.address);
    await podCidrs(server, "here");
    agent = await node.home.start();
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    node.way.isClosed = false;
    node.way.holdMs = 0;
    await node.others(0);
  });

  /** What the registry does is no business of pods. */
  const podsWork = async (): Promise<void> => {
    const id = `pod-${++pods}`;
    expect(await node.addPod(id)).toHaveLength(1);
    await node.removePod(id);
  };

  test("killed and started again: the agent goes on meanwhile, and hears what comes then", async () => {
    await server.signal("SIGKILL");
    await podsWork();
    await server.startAgain();
    await addNode(server, "there", "192.0.2.2");
    await node.others(1);
    await removeNode(server, "there");
    await node.others(0);
  });

  test("its memory and etcd's end after the last version that the agent heard: 410, and a new list", async () => {
    node.way.isClosed = true;
    node.way.cut();
    await addNode(server, "there", "192.0.2.2");
    await addNode(server, "gone", "192.0.2.3");
    await removeNode(server, "gone");
    await podCidrs(server, "there");
    await server.compact();
    await server.signal("SIGKILL");
    await server.startAgain();
    expect(await node.cluster()).toContain(" 0 others");
    await podsWork();
    node.way.isClosed = false;
    await node.others(1);
    expect(agent.stderr).toMatch(/410: too old resource version: \d+ \(\d+\)/);
    expect(await node.nodesList()).toContain("there");
    await removeNode(server, "there");
    await node.others(0);
  });

  test("slow: each answer takes a second and a half, and changes are heard all the same", async () => {
    node.way.holdMs = 1500;
    node.way.cut();
    await addNode(server, "there", "192.0.2.2");
    await podsWork();
    await node.others(1);
    await removeNode(server, "there");
    await node.others(0);
  });

  test("frozen: it takes connections and says nothing; the agent goes on, and hears what comes when it thaws", async () => {
    await server.signal("SIGSTOP");
    node.way.cut();
    await podsWork();
    await server.signal("SIGCONT");
    await addNode(server, "there", "192.0.2.2");
    await node.others(1);
    await removeNode(server, "there");
  });

  test("not there at the start: the agent starts with what it was told, and hears of the others when it is back", async () => {
    await addNode(server, "there", "192.0.2.2");
    await node.others(1);
    const before = await node.addPod("kept");
    // What was told is written down within a second.
    await eventually(
      async () => (await Bun.file(`${node.home.dataDir}/nodes.json`).text()).includes("192.0.2.2"),
      "nodes.json",
    );
    await agent.end();
    node.way.isClosed = true;
    node.way.cut();
    agent = await node.home.start();
    expect(await node.cluster()).toContain("1 others; from what was last known");
    expect(await node.addPod("kept")).toEqual(before);
    await podsWork();
    node.way.isClosed = false;
    await eventually(async () => !(await node.cluster()).includes("last known"), "the API server's own word");
    await removeNode(server, "there");
    await node.others(0);
    await node.removePod("kept");
  });
});
