import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ScriptedApiServer } from "../fakes/kubernetes/scripted-api-server.ts";
import { bridgeName, eventually, networkName } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { WhyNode } from "./why-node.ts";

describeWith("why a pod has no network, with the registry of nodes at fault", ["root", "nft"], () => {
  let node: WhyNode;

  const here = { name: "here", addresses: ["192.0.2.1"], subnets: ["10.79.0.0/24"] };
  const other = { name: "other", addresses: ["192.0.2.2"], subnets: ["10.79.1.0/24"] };
  const write = (file: string, nodes: readonly object[]): void => {
    writeFileSync(`${file}.new`, JSON.stringify({ nodes }), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };

  beforeAll(async () => {
    node = await WhyNode.enter();
    await node.sandbox.node("ip address add 192.0.2.1/24 dev lo");
  });
  /** An agent that has its subnet from there. */
  const begin = async (registry: object): Promise<void> => {
    node.home.change({
      networks: [{ name: networkName, bridge: bridgeName, masquerade: false }],
      nodes: { name: "here", addresses: ["192.0.2.1"], registry },
    });
    node.running = await node.home.start();
  };
  beforeEach(() => node.make());
  afterEach(() => node.clear());
  afterAll(() => node?.[Symbol.asyncDispose]());

  test("its node was released: it gives no new pod an address, and those that run are well", async () => {
    const file = join(node.home.directory, "nodes.yaml");
    write(file, [here, other]);
    await begin({ type: "static", file });
    expect((await node.add("first")).answer.error).toBeUndefined();
    write(file, [other]);
    await eventually(async () => (await node.home.status()).problems.length > 0, "the agent to hear of it");
    expect((await node.add("late")).answer.error?.code).toBe(11);
    const told = await node.why("late");
    expect(told).toMatchObject({
      ...{ status: 1, code: "record-refused" },
      todo: [expect.stringMatching(/pipette nodes list.*Starting, leaving, moving/)],
    });
    expect(told.evidence[0]).toMatch(/code 11\).*has no node "here" any more/);
    expect(await node.why("first")).toMatchObject({ status: 0, result: "fine" });
    await eventually(async () => (await node.why(undefined)).code === "record-refused", "the node's own word of it");
  });

  test("another node claims what this one has: it is left out, and that is the node's word, not a pod's", async () => {
    await using server = await ScriptedApiServer.start();
    server.put("here", ["10.79.0.0/24"], "192.0.2.1");
    await begin({ type: "kubernetes", server: server.url });
    expect((await node.add("first")).answer.error).toBeUndefined();
    server.put("other", ["10.79.0.0/25"], "192.0.2.2");
    await eventually(async () => (await node.home.status()).refusals.length > 0, "the agent to hear of it");
    const told = await eventually(async () => {
      const answer = await node.why(undefined);
      return answer.code === "" ? undefined : answer;
    }, "the node's own word of it");
    expect(told).toMatchObject({
      ...{ status: 1, code: "node-left-out" },
      evidence: [
        expect.stringMatching(/node "other" is left out: it has "10\.79\.0\.0\/25", which overlaps with .* of "here"/),
      ],
      todo: [expect.stringContaining("correct the record")],
    });
    expect(await node.why("first")).toMatchObject({ status: 0, result: "fine" });
    server.delete("other");
    await eventually(async () => (await node.why(undefined)).result === "fine", "the end of it");
    await node.clear();
  });
});
