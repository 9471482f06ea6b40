import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { orderedPath, WatchingNode } from "../fakes/watching-node.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { addNode } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

const antrea = "v1beta2.controlplane.antrea.io";
const own = "v1.controlplane.pipette.io";
const policies = "/apis/controlplane.antrea.io/v1beta2/networkpolicies";

describeWith(
  "the controller behind a real API server's aggregation layer",
  ["linux", "kube-apiserver", "kubectl", "etcd", "openssl"],
  () => {
    const stack = new AsyncDisposableStack();
    let server: ApiServer;
    let controller: ControllerProcess;

    beforeAll(async () => {
      compileExecutables();
      server = stack.use(await ApiServer.start({ aggregates: true }));
      await installController(server);
      for (const node of ["node-a", "node-b"]) await addNode(server, node, "192.0.2.1", "10.80.0.0/24");
      await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
      await server.ask("POST", "/api/v1/namespaces/x/serviceaccounts", { metadata: { name: "default" } });
      await server.create("/api/v1/namespaces/x/pods", {
        metadata: { name: "db", labels: { app: "db" } },
        spec: { nodeName: "node-a", automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] },
      });
      await server.create("/apis/networking.k8s.io/v1/namespaces/x/networkpolicies", {
        metadata: { name: "closed" },
        spec: { podSelector: {}, policyTypes: ["Ingress"] },
      });
      controller = stack.use(await ControllerProcess.start(server));
      await controller.logged("the policies are computed");
      // In place of a Service whose address somebody forwards. The names of certificates are those of the Service.
      await server.create("/api/v1/namespaces/kube-system/services", {
        metadata: { name: "pipette-controller" },
        spec: { type: "ExternalName", externalName: "localhost" },
      });
      const port = Number(new URL(controller.url).port);
      // The API server looks for the kinds of one that is trusted at once, and for those of others after a minute.
      const caBundle = Buffer.from(await controller.ca()).toString("base64");
      for (const [name, trust] of [
        [antrea, { caBundle }],
        [own, {}],
      ] as const) {
        const [version, ...group] = name.split(".");
        await server.create("/apis/apiregistration.k8s.io/v1/apiservices", {
          metadata: { name },
          spec: {
            ...{ group: group.join("."), version, groupPriorityMinimum: 100, versionPriority: 10, ...trust },
            service: { name: "pipette-controller", namespace: "kube-system", port },
          },
        });
      }
      await eventually(async () => (await availability(antrea)) === "True", `${antrea} to be available`, 90_000);
      // Whom to trust it fills in where that is missing.
      await controller.restart("SIGTERM");
      await eventually(async () => (await availability(own)) === "True", `${own} to be available`, 90_000);
      // It was looked for during the restart as well, and a busy machine misses the next minute's look.
      await eventually(async () => (await server.ask("GET", policies)).status === 200, "the policies", 150_000);
    }, 360_000);
    afterAll(() => stack.disposeAsync());

    async function availability(name: string): Promise<string | undefined> {
      const { body } = await server.ask("GET", `/apis/apiregistration.k8s.io/v1/apiservices/${name}`);
      const { conditions = [] } = (body["status"] ?? {}) as { conditions?: { type: string; status: string }[] };
      return conditions.find(({ type }) => type === "Available")?.status;
    }

    test("kubectl finds and reads what there is as anything of the cluster's", async () => {
      const kinds = () => server.kubectl("api-resources", "--api-group=controlplane.antrea.io", "-o", "name");
      const named = "networkpolicies.controlplane.antrea.io";
      await eventually(async () => (await kinds()).split("\n").includes(named), "the kinds", 90_000);
      const list = JSON.parse(
        await server.kubectl("get", "networkpolicies.v1beta2.controlplane.antrea.io", "-o", "json"),
      );
      expect(list.items).toMatchObject([{ kind: "NetworkPolicy", sourceRef: { name: "closed" } }]);
      // The API server reads descriptions by and by.
      const explain = () =>
        server.kubectl("explain", "networkpolicies", "--api-version=controlplane.antrea.io/v1beta2").catch(() => "");
      const explained = await eventually(async () => (await explain()) || undefined, "the description", 90_000);
      expect(explained).toMatch(/KIND: +NetworkPolicy\n/);
      expect(explained).toContain("as nodes enforce it");
      expect(await server.kubectl("get", "--raw", "/apis/controlplane.pipette.io/v1/policystats")).toContain(
        '"name":"closed"',
      );
    });

    test("who asks is known by what the API server says of them: an agent reads and follows its own node alone", async () => {
      const [a, b] = [await agentToken(server, "node-a"), await agentToken(server, "node-b")];
      const items = async (token: string) => (await server.ask("GET", policies, undefined, token)).body["items"];
      expect([await items(a), await items(b)]).toEqual([
        [expect.objectContaining({ sourceRef: expect.objectContaining({ name: "closed" }) })],
        [],
      ]);
      expect(
        (await server.ask("GET", `${policies}?watch=true&fieldSelector=nodeName=node-a`, undefined, b)).status,
      ).toBe(403);
      expect((await server.ask("GET", policies, undefined, "nonsense")).status).toBe(401);
      const ca = await Bun.file(server.ca).text();
      await using node = new WatchingNode(server.url, ca, "node-a", orderedPath("node-a"), a);
      await eventually(() => node.view.bookmark, "the bookmark through the API server");
      await server.ask("DELETE", "/apis/networking.k8s.io/v1/namespaces/x/networkpolicies/closed");
      await eventually(() => node.view.policies.size === 0, "the end of the policy");
      expect(node.failure).toBeUndefined();
    });
  },
);
