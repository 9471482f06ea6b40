import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { controllerAccess, NodePolicies } from "../../agent/policies/mod.ts";
import { ApiClient, KubernetesEvents, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { PolicyEnforcementInMemory } from "../fakes/policy-enforcement.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer, adminToken as admin } from "./api-server.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { addNode } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

const x = "/api/v1/namespaces/x";
const api = "/apis/controlplane.antrea.io/v1beta2";
const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pipette-controller";
/** A Lease that is not left, and a busy machine. */
const longestMs = 60_000;

describeWith(
  "what nodes tell of policies, at a real API server",
  ["linux", "kube-apiserver", "etcd", "openssl"],
  () => {
    const stack = new AsyncDisposableStack();
    const tokens = { "node-a": "", "node-b": "" };
    let server: ApiServer;
    let controllers: readonly [ControllerProcess, ControllerProcess];
    let uid: string;

    beforeAll(async () => {
      compileExecutables();
      server = stack.use(await ApiServer.start());
      await installController(server);
      await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
      await server.ask("POST", `${x}/serviceaccounts`, { metadata: { name: "default" } });
      for (const node of ["node-a", "node-b"] as const) {
        await addNode(server, node, "192.0.2.1", "10.80.0.0/24");
        tokens[node] = await agentToken(server, node);
        await addPod(`db-${node}`, node);
      }
      const policy = await server.create("/apis/networking.k8s.io/v1/namespaces/x/networkpolicies", {
        metadata: { name: "web-only" },
        spec: {
          podSelector: { matchLabels: { app: "db" } },
          ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }] }],
        },
      });
      uid = (policy["metadata"] as { uid: string }).uid;
      const start = async () =>
        stack.use(await ControllerProcess.start(server, ["--advertise", "127.0.0.1", "--log-level", "debug"]));
      controllers = [await start(), await start()];
      for (const each of controllers) await each.logged("the policies are computed");
    }, 180_000);
    afterAll(() => stack.disposeAsync());

    async function addPod(name: string, nodeName: string, app = "db"): Promise<{ uid: string }> {
      const containers = [{ name: "c", image: "none" }];
      const pod = await server.create(`${x}/pods`, {
        metadata: { name, labels: { app } },
        spec: { nodeName, automountServiceAccountToken: false, containers },
      });
      return pod["metadata"] as { uid: string };
    }
    async function post(to: ControllerProcess, path: string, token: string, body: object): Promise<number> {
      const headers = { "content-type": "application/json" };
      const answer = await to.ask(path, token, { method: "POST", headers, body: JSON.stringify(body) });
      await answer.body?.cancel();
      return answer.status;
    }
    const reportTo = (to: ControllerProcess, node: keyof typeof tokens): Promise<number> =>
      post(to, `${api}/networkpolicies/${uid}/status`, tokens[node], {
        metadata: { name: uid },
        nodes: [{ nodeName: node, generation: 1 }],
      });
    /** Names of the nodes that enforce the policy, as a controller says it; nothing where it does not know. */
    async function nodesAt(of: ControllerProcess): Promise<string | undefined> {
      const answer = await of.ask(`${api}/networkpolicies/${uid}/status`, admin);
      const { nodes } = (await answer.json()) as { nodes?: { nodeName: string }[] };
      return nodes
        ?.map(({ nodeName }) => nodeName)
        .sort()
        .join(" ");
    }
    const everywhere = (nodes: string): Promise<unknown> =>
      eventually(
        async () => (await Promise.all(controllers.map(nodesAt))).every((each) => each === nodes),
        `"${nodes}" from both controllers`,
        longestMs,
      );
    const holder = async (): Promise<string> => {
      const { body } = await server.ask("GET", lease);
      return (body["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity ?? "";
    };

    test("two controllers answer what the nodes of both have told, of nodes that the policy concerns", async () => {
      await eventually(async () => (await holder()) !== "", "a holder of the Lease", longestMs);
      const statuses = [await reportTo(controllers[0], "node-a"), await reportTo(controllers[1], "node-b")];
      expect(statuses).toEqual([201, 201]);
      await everywhere("node-a node-b");
      const sums = async (of: ControllerProcess) =>
        (await (await of.ask("/apis/controlplane.pipette.io/v1/policystats", admin)).json()) as object;
      for (const [i, node] of (["node-a", "node-b"] as const).entries())
        await post(controllers[i as 0 | 1], `${api}/nodestatssummaries`, tokens[node], {
          metadata: { name: node },
          networkPolicies: [{ networkPolicy: { uid }, trafficStats: { packets: 2, bytes: 200, sessions: 1 } }],
        });
      for (const each of controllers)
        await eventually(
          async () => JSON.stringify(await sums(each)).includes('"packets":4,"bytes":400,"sessions":2'),
          "the sums",
        );
      // An agent speaks for its own node, and hands on nothing.
      expect(await post(controllers[0], "/apis/controlplane.pipette.io/v1/policyreports", tokens["node-a"], {})).toBe(
        403,
      );
    });

    test("where the one that has the Lease is killed another takes it, and knows all once nodes have told it", async () => {
      const before = await holder();
      const [held, other] = before.startsWith(controllers[0].url.slice("https://".length))
        ? controllers
        : [controllers[1], controllers[0]];
      await held.restart("SIGKILL", ["--advertise", "127.0.0.1"]);
      await held.logged("the policies are computed");
      await eventually(async () => (await holder()) !== before, "another holder", longestMs);
      // As agents do that followed the one that is gone, and come to another.
      for (const node of ["node-a", "node-b"] as const) expect(await reportTo(other, node)).toBe(201);
      await everywhere("node-a node-b");
      await server.ask("DELETE", `${x}/pods/db-node-b?gracePeriodSeconds=0`);
      await everywhere("node-a");
    }, 180_000);

    test("a pod that starts isolated and a policy that is refused are Events, and an agent without the right says so", async () => {
      const directory = mkdtempSync(join(tmpdir(), "pt-events-"));
      stack.defer(() => rmSync(directory, { recursive: true, force: true }));
      const [ca, token] = [join(directory, "ca.crt"), join(directory, "token")];
      writeFileSync(ca, await controllers[0].ca());
      writeFileSync(token, tokens["node-a"], { mode: 0o600 });
      const lines: string[] = [];
      const logger = createLogger("info", (line) => lines.push(line));
      const enforcement = new PolicyEnforcementInMemory();
      const access = serviceAccountAccess({ server: server.url, ca: server.ca, token }, {}, "policies.controller");
      const config = { controller: controllers[0].url, namespace: "kube-system", ca, token };
      let isAway = true;
      const connect = controllerAccess(config, {});
      await using node = new NodePolicies({
        ...{ node: "node-a", dataDir: directory, waitMs: 100, enforcement, logger, reportMs: 1000 },
        connect: async () => {
          if (isAway) throw new Error("the controller is away");
          return await connect();
        },
        events: new KubernetesEvents({ node: "node-a", connect: () => new ApiClient(access), logger }),
      });
      await node.prepare([]);
      await node.begin([]);
      const start = async (name: string, uid: string): Promise<void> => {
        const owner = { network: "pods", sandboxId: name, ifname: "eth0" };
        await node.admit(owner, { namespace: "x", name, uid });
        await node.settle(owner);
      };
      const events = async (): Promise<readonly Record<string, unknown>[]> =>
        (await server.ask("GET", `${x}/events`)).body["items"] as Record<string, unknown>[];
      const { uid: late } = await addPod("late", "node-a");
      await start("late", late);
      const [told] = await eventually(async () => {
        const all = await events();
        return all.length > 0 && all;
      }, "the pod's Event");
      expect(told).toMatchObject({
        ...{ type: "Warning", reason: "StartedIsolated", count: 1 },
        involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "x", name: "late", uid: late },
        source: { component: "pipette-agent", host: "node-a" },
      });
      isAway = false;
      const rule = await eventually(() => [...enforcement.inForce.rules.keys()][0], "the rule", longestMs);
      enforcement.cannot.add(rule);
      await addPod("web", "node-b", "web");
      const status = { phase: "Running", podIP: "10.80.0.9", podIPs: [{ ip: "10.80.0.9" }] };
      await server.ask("PATCH", `${x}/pods/web/status`, { status });
      const refused = () => events().then((all) => all.find(({ reason }) => reason === "NotEnforced"));
      expect(await eventually(refused, "the policy's Event", longestMs)).toMatchObject({
        message: "Not all of it is in force, and what it would allow is closed: a test says so",
        involvedObject: {
          apiVersion: "networking.k8s.io/v1",
          kind: "NetworkPolicy",
          namespace: "x",
          name: "web-only",
          uid,
        },
      });
      const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pipette-agent";
      const rules = (await server.ask("GET", role)).body["rules"] as { resources: string[] }[];
      await server.ask("PATCH", role, { rules: rules.filter(({ resources }) => !resources.includes("events")) });
      await eventually(
        async () => {
          // One that the controller never hears of.
          await start(`unknown-${performance.now().toFixed(0)}`, crypto.randomUUID());
          return lines.some((line) => line.includes("give the agent the right to create events"));
        },
        "a word in the log",
        longestMs,
      );
    }, 180_000);
  },
);
