import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { orderedPath, WatchingNode } from "../fakes/watching-node.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { addNode } from "./registry-node.ts";
import { agentToken, requestToken } from "./service-account.ts";

const computed = "the policies are computed";

describeWith("the controller at a real API server", ["linux", "kube-apiserver", "etcd", "openssl"], () => {
  let server: ApiServer;
  let controller: ControllerProcess;
  let own: string;

  beforeAll(async () => {
    compileExecutables();
    server = await ApiServer.start();
    await installController(server);
    for (const node of ["node-a", "node-b"]) await addNode(server, node, "192.0.2.1", "10.80.0.0/24");
    own = await agentToken(server, "node-a");
    await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
    await server
      .create("/api/v1/namespaces/x/serviceaccounts", { metadata: { name: "default" } })
      .catch(() => undefined);
    await server.create("/apis/networking.k8s.io/v1/namespaces/x/networkpolicies", {
      metadata: { name: "web-only" },
      spec: {
        podSelector: { matchLabels: { app: "db" } },
        ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }], ports: [{ port: 5432 }] }],
      },
    });
    controller = await ControllerProcess.start(server);
    await controller.logged(computed);
  });
  afterAll(async () => {
    await controller?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const addPod = (name: string, node: string, labels: object): Promise<unknown> =>
    server.create("/api/v1/namespaces/x/pods", {
      metadata: { name, labels },
      spec: { nodeName: node, automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] },
    });
  const setAddress = (name: string, ip: string): Promise<unknown> =>
    server.ask("PATCH", `/api/v1/namespaces/x/pods/${name}/status`, {
      status: { phase: "Running", podIP: ip, podIPs: [{ ip }] },
    });

  test("a node's agent hears of its pods' policies, in order, and of the marks of all its pods", async () => {
    await using node = new WatchingNode(controller.url, await controller.ca(), "node-a", orderedPath("node-a"), own);
    await eventually(() => node.view.bookmark, "the bookmark");
    await addPod("db-0", "node-a", { app: "db" });
    await eventually(() => node.view.pods.has("x/db-0") && node.view.policies.size === 1, "the policy of db-0");
    await addPod("web-0", "node-b", { app: "web" });
    await setAddress("web-0", "10.80.1.7");
    const members = () => [...node.view.addressGroups.values()].flatMap((group) => [...group.values()]);
    await eventually(() => members().some(({ pod }) => pod?.name === "web-0"), "the peer");
    expect(node.failure).toBeUndefined();
  });

  test("a token reads its own node's objects and no other's; nobody's reads nothing", async () => {
    const status = async (path: string, token: string): Promise<number> => {
      const answer = await controller.ask(path, token);
      await answer.body?.cancel();
      return answer.status;
    };
    expect(await status(orderedPath("node-a"), own)).toBe(200);
    expect(await status(orderedPath("node-b"), own)).toBe(403);
    expect(await status(orderedPath("node-a"), "nonsense")).toBe(401);
    // Of no pod, as an administrator may make it: what RBAC says.
    expect(await status(orderedPath("node-b"), await requestToken(server, {}))).toBe(200);
    const policies = "/apis/controlplane.antrea.io/v1beta2/networkpolicies";
    expect(await (await controller.ask(policies, own)).json()).toMatchObject({
      kind: "NetworkPolicyList",
      items: [{ sourceRef: { namespace: "x", name: "web-only" }, rules: [{ direction: "In", action: "Allow" }] }],
    });
    expect(await (await controller.ask(policies, await agentToken(server, "node-b"))).json()).toMatchObject({
      items: [],
    });
  });
});
