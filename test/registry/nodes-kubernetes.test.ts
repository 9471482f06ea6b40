import { afterEach, beforeEach, expect, test } from "vitest";
import { ScriptedApiServer } from "../fakes/kubernetes/scripted-api-server.ts";
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

  test("takes no Node object that leads where no pods can be, and starts with one that it was told of", async () => {
    server.put("here", ["10.79.0.0/24"], "192.0.2.1");
    server.put("there", ["10.79.1.0/24"], "192.0.2.2");
    const agent = await home.start();
    await eventually(async () => (await cluster()).includes(" 1 others"), "the other node");
    const hostile: Readonly<Record<string, readonly [cidr: string, address: string, is: string]>> = {
      multicast: ["224.0.0.0/4", "192.0.2.9", 'its subnet "224.0.0.0/4" touches "224.0.0.0/3", multicast'],
      metadata: ["169.254.169.252/30", "192.0.2.9", 'touches "169.254.0.0/16", link-local'],
      world: ["128.0.0.0/1", "192.0.2.9", 'touches "169.254.0.0/16", link-local'],
      "link-local-6": ["fe80::/64", "192.0.2.9", 'touches "fe80::/10", link-local'],
      "world-6": ["2000::/3", "192.0.2.9", "is too large for one node, wanted /48 or smaller"],
      link: ["192.0.2.64/26", "192.0.2.9", 'touches "192.0.2.0/24", the network that this node'],
      part: ["10.79.1.0/28", "192.0.2.9", 'it has "10.79.1.0/28", which overlaps with "10.79.1.0/24" of "there"'],
      address: ["10.79.9.0/24", "192.0.2.2", 'it has "192.0.2.2", the address of "there"'],
      end: ["10.79.9.0/24", "192.0.2.255", 'its address "192.0.2.255" is of no host in "192.0.2.0/24"'],
    };
    for (const [name, [cidr, address]] of Object.entries(hostile)) server.put(name, [cidr], address);
    const expectRefused = async (): Promise<void> => {
      const said = await eventually(async () => {
        const { refusals } = await home.status();
        return refusals.length === Object.keys(hostile).length && refusals;
      }, "the refusals");
      for (const [name, [, , is]] of Object.entries(hostile))
        expect(said.filter((line) => line.startsWith(`node "${name}" is left out: `))).toEqual([
          expect.stringContaining(is),
        ]);
      expect(await cluster()).toContain(" 1 others");
    };
    await expectRefused();
    await agent.end();
    await home.start();
    await expectRefused();
    const status = (await pipette(home, "status", "--socket", home.socket)).stdout;
    expect([status.includes("no problems"), status.includes('refused: node "multicast" is left out')]).toEqual([
      false,
      true,
    ]);
    const { stdout } = await pipette(home, "doctor", "--once", "--json");
    const codes = JSON.parse(stdout).findings.map(({ code }: { code: string }) => code);
    expect(codes.filter((code: string) => code === "refused-record")).toHaveLength(Object.keys(hostile).length);
    for (const name of Object.keys(hostile)) server.delete(name);
    await eventually(async () => (await home.status()).refusals.length === 0, "their end");
  });

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
