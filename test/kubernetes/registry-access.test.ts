import { readFileSync, writeFileSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type AgentProcess, eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, RegistryNode, registryNeeds, shipped } from "./registry-node.ts";
import { agentToken, endingAt, requestToken } from "./service-account.ts";

const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pipette-agent";
const verbs = ["get", "list", "watch", "patch"];

describeWith("an agent at the door of a real API server", registryNeeds, () => {
  let server: ApiServer;
  let node: RegistryNode;

  let nodes = 0;

  beforeAll(async () => {
    server = await ApiServer.start();
    await shipped(server);
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    nodes = 0;
    node = await RegistryNode.create(server, "here");
    await addNode(server, "here", node.address, "10.80.0.0/24");
  });
  afterEach(async () => {
    await node?.[Symbol.asyncDispose]();
    for (const all of ["nodes", "namespaces/kube-system/pods"])
      await server.ask("DELETE", `/api/v1/${all}?gracePeriodSeconds=0`);
  });

  /** One more, which the agent may hear of or not. */
  const another = (): Promise<void> => {
    const number = ++nodes;
    return addNode(server, `other-${number}`, `192.0.2.${1 + number}`, `10.80.${number}.0/24`);
  };
  const allow = async (allowed: readonly string[]): Promise<void> => {
    const rules = [{ apiGroups: [""], resources: ["nodes"], verbs: allowed }];
    expect((await server.ask("PATCH", role, { rules })).status).toBe(200);
  };
  /** What the server says to whoever asks for the Nodes with this token. */
  const answers = (token: string, status: number) =>
    eventually(async () => (await server.ask("GET", "/api/v1/nodes", undefined, token)).status === status, `${status}`);
  const complains = (agent: AgentProcess, is: RegExp) => agent.logged((line) => is.test(String(line["error"])));
  const token = (): string => readFileSync(node.tokenFile, "utf8");

  test.each(["get", "patch"])(
    "without the right to %s Nodes it waits and says why, and joins with it",
    async (verb) => {
      await allow(verbs.filter((each) => each !== verb));
      const agent = node.home.spawn();
      await complains(agent, new RegExp(`403: nodes "here" is forbidden: .* cannot ${verb} resource "nodes"`));
      // Closed: nobody has said which addresses are this node's.
      await expect(node.addPod("early")).rejects.toThrow(/^11: .*403/);
      await allow(verbs);
      await agent.logged(({ message }) => message === "ready");
      expect(await node.addPod("early")).toHaveLength(1);
    },
  );

  test.each(["list", "watch"])(
    "without the right to %s Nodes it says why, and hears of others with it",
    async (verb) => {
      await allow(verbs.filter((each) => each !== verb));
      const agent = await node.home.start();
      await complains(agent, new RegExp(`403: nodes is forbidden: .* cannot ${verb} resource "nodes"`));
      expect(await node.addPod("one")).toHaveLength(1);
      await another();
      await allow(verbs);
      await node.others(1);
    },
  );

  test("a token that ends, and one whose pod is gone, give way to the next one in the file", async () => {
    const first = token();
    // The server grants a minute more, and remembers for some seconds whom it knows.
    const ending = endingAt(server, first, Date.now() / 1000 - 57);
    node.setToken(ending);
    const agent = await node.home.start();
    await node.others(0);
    await answers(ending, 401);
    node.way.cut();
    await complains(agent, /401: Unauthorized/);
    await another();
    expect(await node.addPod("one")).toHaveLength(1);
    node.setToken(first);
    await node.others(1);

    await server.ask("DELETE", "/api/v1/namespaces/kube-system/pods/agent-here?gracePeriodSeconds=0");
    await answers(first, 401);
    await another();
    node.way.cut();
    await eventually(
      () => agent.lines.filter(({ error }) => /401/.test(String(error))).length === 2,
      "the second refusal",
    );
    node.setToken(await agentToken(server, "here"));
    await another();
    await node.others(3);
    expect(agent.stderr + agent.stdout).not.toContain(first.slice(-40));
  });

  test("a token of no pod, none at all, and one of another node's pod get it nowhere", async () => {
    node.setToken(await requestToken(server, {}));
    const agent = node.home.spawn();
    await complains(agent, /422: .*an agent changes its own Node only: its token is of a pod on node ""/);
    node.setToken("nobody");
    await complains(agent, /401/);
    node.setToken(await agentToken(server, "elsewhere"));
    await complains(agent, /422: .*its token is of a pod on node "elsewhere"/);
    expect(await agent.end()).toBe(0);
  });

  test("the server's certificate is rotated, then its authority, which is not believed before the agent has it", async () => {
    const agent = await node.home.start();
    const before = await certificateAt(server);
    await server.certificates.make("server", "ca", "127.0.0.1");
    await eventually(async () => (await certificateAt(server)) !== before, "the new certificate");
    node.way.cut();
    await another();
    await node.others(1);

    await server.signal("SIGKILL");
    await server.certificates.make("ca");
    await server.certificates.make("server", "ca", "127.0.0.1");
    await server.startAgain();
    await complains(agent, /certificate/i);
    await another();
    expect(await node.addPod("one")).toHaveLength(1);
    expect(await node.cluster()).toContain(" 1 others");
    writeFileSync(node.caFile, readFileSync(server.ca));
    await node.others(2);
  });
});

/** What the server shows to whoever comes. */
function certificateAt(server: ApiServer): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket: TLSSocket = connect({
    port: Number(new URL(server.url).port),
    host: "127.0.0.1",
    rejectUnauthorized: false,
  });
  socket.once("secureConnect", () => {
    resolve(socket.getPeerCertificate().fingerprint256);
    socket.destroy();
  });
  socket.once("error", reject);
  return promise;
}
