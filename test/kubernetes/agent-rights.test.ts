import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KubernetesRegistry } from "../../agent/cluster/kubernetes/kubernetes-registry.ts";
import { ApiClient, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, shipped } from "./registry-node.ts";
import { account, agentToken, requestToken } from "./service-account.ts";

const mac = "node.pipette.io/mac-address";
const encryption = "node.pipette.io/encryption";

describeWith("the rights of an agent at a real API server", ["kube-apiserver", "etcd", "openssl"], () => {
  let server: ApiServer;
  let own: string;
  let unbound: string;

  beforeAll(async () => {
    server = await ApiServer.start();
    await shipped(server);
    for (const number of [1, 2]) {
      const name = number === 1 ? "node-a" : "node-b";
      await addNode(server, name, `192.0.2.${number}`, `10.80.${number}.0/24`);
      const metadata = { labels: { zone: "one" }, annotations: { theirs: "kept" } };
      await server.ask("PATCH", `/api/v1/nodes/${name}`, { metadata });
    }
    own = await agentToken(server, "node-a");
    unbound = await requestToken(server, {});
    // A policy counts once the server has compiled it.
    await eventually(async () => (await patch("node-b", {}, own)).status === 422, "the policy");
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  const patch = (node: string, change: object, token: string) =>
    server.ask("PATCH", `/api/v1/nodes/${node}`, change, token);
  const annotated = (annotations: object) => ({ metadata: { annotations } });

  test("the registry registers its own node, sees the others, and changes none of them", async () => {
    using scratch = scratchDir();
    const token = join(scratch.path, "token");
    writeFileSync(token, own, { mode: 0o600 });
    const access = serviceAccountAccess({ server: server.url, ca: server.ca, token }, {}, "nodes.registry.server");
    const api = new ApiClient(access);
    await using registry = new KubernetesRegistry({ api, logger: createLogger("error", () => undefined) });
    const self = (name: string) => ({ name, uid: "", addresses: [], mac: "02:00:00:00:00:01" });
    expect(await registry.register(self("node-a"))).toMatchObject({ name: "node-a", subnets: [{ prefix: 24 }] });
    const { body } = await server.ask("GET", "/api/v1/nodes/node-a");
    expect(body).toMatchObject(annotated({ theirs: "kept", [mac]: "02:00:00:00:00:01" }));
    expect((await registry.list()).map(({ name }) => name)).toEqual(["node-a", "node-b"]);
    await expect(registry.register(self("node-b"))).rejects.toThrow(
      /422: .*an agent changes its own Node only: its token is of a pod on node "node-a"/,
    );
  });

  test.each<[string, object]>([
    ["another annotation", annotated({ other: "x" })],
    ["somebody else's annotation", annotated({ theirs: "changed" })],
    ["the removal of somebody else's annotation", annotated({ theirs: null })],
    ["a label", { metadata: { labels: { zone: "two" } } }],
    ["a taint", { spec: { taints: [{ key: "k", effect: "NoExecute" }] } }],
    ["no scheduling", { spec: { unschedulable: true } }],
    ["a finalizer", { metadata: { finalizers: ["example.org/x"] } }],
    ["an owner", { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node-b", uid: "u" }] } }],
  ])("of its own Node it changes nothing else: not %s", async (_, change) => {
    const { status, body } = await patch("node-a", change, own);
    expect([status, body.message]).toEqual([422, expect.stringContaining("an agent changes no")]);
  });

  test("its own annotations it sets, changes and takes away, and others do what they like", async () => {
    for (const value of ["02:00:00:00:00:0a", "02:00:00:00:00:0b", null])
      expect((await patch("node-a", annotated({ [mac]: value }), own)).status).toBe(200);
    for (const value of ["wireguard:a", "wireguard:b", null])
      expect((await patch("node-a", annotated({ [encryption]: value }), own)).status).toBe(200);
    expect((await server.ask("PATCH", "/api/v1/nodes/node-b", annotated({ anything: "x" }))).status).toBe(200);
  });

  test("a token that is of no pod reads, and changes nothing", async () => {
    expect((await server.ask("GET", "/api/v1/nodes", undefined, unbound)).status).toBe(200);
    expect((await patch("node-a", annotated({ [mac]: "02:00:00:00:00:01" }), unbound)).status).toBe(422);
  });

  test.each([
    ["PATCH", "/api/v1/nodes/node-a/status", { status: { addresses: [] } }],
    ["DELETE", "/api/v1/nodes/node-a", undefined],
    ["POST", "/api/v1/nodes", { metadata: { name: "node-c" } }],
    ["GET", "/api/v1/pods", undefined],
    ["GET", "/api/v1/namespaces/kube-system/secrets", undefined],
    ["POST", `${account}/token`, { spec: {} }],
  ])("its role has nothing of %s %s", async (method, path, body) => {
    expect((await server.ask(method, path, body, own)).status).toBe(403);
  });
});
