import { afterEach, beforeEach, expect, test } from "vitest";
import { ScriptedApiServer } from "../../agent/nodes/kubernetes/scripted-api-server.ts";
import { type AgentHome, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { pipette, registryHome } from "./registry-home.ts";

describeWith("a node of Kubernetes, whose API is played", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let server: ScriptedApiServer;
  let home: AgentHome;

  beforeEach(async () => {
    sandbox = await NetworkSandbox.enter("pt-rk-");
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
    server = await ScriptedApiServer.start();
    home = registryHome(() => ({ type: "kubernetes", server: server.url }));
  });
  afterEach(async () => {
    await home?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  const cluster = async (): Promise<string> => (await home.status()).cluster;

  test("waits for its pod CIDR, follows the others, and goes on without the API server", async () => {
    const netns = await sandbox.addPod();
    server.put("there", ["10.79.1.0/24"], "192.0.2.2");
    const agent = home.spawn();
    const waiting = await agent.logged(({ message }) => message === "waiting to join");
    expect(waiting["error"]).toContain('404: nodes "here" not found');
    server.put("here", ["10.79.0.0/24"], "192.0.2.1");
    await agent.logged(({ message }) => message === "ready");
    const add = () => home.cmd("cmdAdd", "one", { netns });
    const address = resultOf(await add()).ips[0]?.address;
    expect(address).toMatch(/^10\.79\.0\.\d+\/24$/);
    await eventually(async () => (await cluster()).includes(" 1 others"), "the other node");
    server.put("new", ["10.79.2.0/24"], "192.0.2.3");
    await eventually(async () => (await cluster()).includes(" 2 others"), "a new node");
    server.delete("there");
    await eventually(async () => (await cluster()).includes(" 1 others"), "a node that goes");
    expect((await pipette(home, "nodes", "list")).stdout).toMatch(/^here +ready +192\.0\.2\.1 +10\.79\.0\.0\/24/m);
    expect((await pipette(home, "nodes", "release", "new", "--force")).stderr).toContain('"kubectl delete node new"');
    await agent.end();

    await server[Symbol.asyncDispose]();
    await home.start();
    expect(resultOf(await add()).ips[0]?.address).toBe(address);
    expect(await cluster()).toContain("1 others; from what was last known");
  });
});
