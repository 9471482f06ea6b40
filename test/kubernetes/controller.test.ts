import { existsSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { staleAnnotation } from "../../shared/proto/control-plane-messages.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { orderedPath, WatchingNode } from "../fakes/watching-node.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { kubernetesProgram } from "./assets.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { addNode } from "./registry-node.ts";
import { agentToken, requestToken } from "./service-account.ts";

const computed = "the policies are computed";

describeWith("the controller at a real API server", ["linux", "kube-apiserver", "kubectl", "etcd", "openssl"], () => {
  let server: ApiServer;
  let controller: ControllerProcess;
  let own: string;
  let ca: string;

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
    ca = await controller.ca();
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

  test("kubectl, a client of Kubernetes' own making, finds what there is and reads it", async () => {
    const kubectl = async (...words: readonly string[]): Promise<string> =>
      (
        await execa(kubernetesProgram("kubectl"), [
          ...controller.kubectlFlags(await requestToken(server, {}), ca),
          ...words,
        ])
      ).stdout;
    const resources = await kubectl("api-resources", "--verbs=list", "-o", "name", "--sort-by=name");
    expect(resources.split("\n")).toEqual([
      ...["addressgroups", "appliedtogroups", "egressgroups", "networkpolicies"].map(
        (name) => `${name}.controlplane.antrea.io`,
      ),
      ...["policyreports", "policystats"].map((name) => `${name}.controlplane.pipette.io`),
      "supportbundlecollections.controlplane.antrea.io",
    ]);
    const list = JSON.parse(await kubectl("get", "networkpolicies.v1beta2.controlplane.antrea.io", "-o", "json"));
    expect(list.items).toMatchObject([{ kind: "NetworkPolicy", sourceRef: { name: "web-only" } }]);
    const { name } = list.items[0].metadata;
    expect(await kubectl("get", "networkpolicies.v1beta2.controlplane.antrea.io", name)).toContain(name);
  });

  test("a restart serves what was known, and says so, until all of it is computed anew", async () => {
    const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pipette-controller";
    const { body } = await server.ask("GET", role);
    const rules = body["rules"] as { resources: string[] }[];
    const follow = async () =>
      new WatchingNode(controller.url, await controller.ca(), "node-a", orderedPath("node-a"), own);
    await eventually(() => existsSync(join(controller.directory, "data", "policy-inputs.jsonl")), "the kept file");
    // It cannot list pods, as while the API server has much else to do.
    await server.ask("PATCH", role, { rules: rules.filter(({ resources }) => !resources.includes("pods")) });
    await controller.restart("SIGTERM");
    await controller.logged("ready");
    await using stale = await follow();
    await eventually(() => stale.view.bookmark, "the bookmark");
    expect(stale.view.bookmark).toEqual({ [staleAnnotation]: "true" });
    expect([stale.view.policies.size, stale.view.pods.has("x/db-0")]).toEqual([1, true]);
    await server.ask("PATCH", role, { rules });
    await eventually(() => stale.isOver, "the end of what was old", 60_000);
    expect(stale.failure).toBeUndefined();
    await using fresh = await follow();
    await eventually(() => fresh.view.bookmark, "the bookmark");
    expect([fresh.view.bookmark, fresh.view.state]).toEqual([{}, stale.view.state]);
  });

  test("two of them show the same certificate, and compute the same", async () => {
    await using other = await ControllerProcess.start(server);
    await other.logged(computed);
    const path = "/apis/controlplane.antrea.io/v1beta2/addressgroups";
    const token = await requestToken(server, {});
    const items = async (of: ControllerProcess): Promise<unknown> =>
      ((await (await of.ask(path, token)).json()) as { items: unknown }).items;
    expect(await items(other)).toEqual(await items(controller));
  });
});
