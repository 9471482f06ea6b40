import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NodeKeeper } from "../../controller/nodes/mod.ts";
import { ApiClient, kubeconfigAccess } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { pathOf, plainObjects } from "../manifests/manifest.ts";
import { AgentHome, type AgentProcess, bridgeName, eventually } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, removeNode, shipped } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

interface NodeObject {
  readonly status?: {
    readonly agentVersion: string;
    readonly addresses: readonly { readonly allocated: number; readonly free: string }[];
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly lastTransitionTime: string;
    }[];
  };
  readonly metadata: { readonly resourceVersion: string };
}

describeWith(
  "nodes in the cluster's own words",
  ["root", "nft", "kube-apiserver", "etcd", "openssl", "kubectl"],
  () => {
    const stack = new AsyncDisposableStack();
    let server: ApiServer;
    let home: AgentHome;
    let agent: AgentProcess;
    let own: string;

    beforeAll(async () => {
      stack.use(await NetworkSandbox.enter("pt-cs-"));
      server = stack.use(await ApiServer.start());
      await shipped(server);
      for (const object of plainObjects("pipette-cluster-state.yaml")) await server.create(pathOf(object), object);
      for (const name of ["node-a", "node-b"]) await addNode(server, name, "192.0.2.1", "10.80.1.0/24");
      own = await agentToken(server, "node-a");
      // A policy counts once the server has compiled it, and a kind once it is served.
      await eventually(async () => (await create("node-b")).status === 422, "the policy");
      home = stack.use(new AgentHome());
      const token = join(home.directory, "token");
      writeFileSync(token, own, { mode: 0o600 });
      home.change({ clusterState: { server: server.url, ca: server.ca, token } });
      agent = await home.start({ PIPETTE_NODE_NAME: "node-a" });
    }, 120_000);
    afterAll(() => stack.disposeAsync());

    const nodes = "/apis/pipette.io/v1alpha1/pipettenodes";
    const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    const state = async (): Promise<NodeObject> => {
      const { status, body } = await server.ask("GET", `${nodes}/node-a`);
      // What refuses has a status of its own.
      return status === 200 ? (body as unknown as NodeObject) : { metadata: { resourceVersion: "" } };
    };
    const create = (name: string, token = own) =>
      server.ask("POST", nodes, { apiVersion: "pipette.io/v1alpha1", kind: "PipetteNode", metadata: { name } }, token);
    const readyOf = ({ status }: NodeObject) => status?.conditions.find(({ type }) => type === "Ready");

    test("an agent tells how its node is, and that it is alive", async () => {
      const object = await eventually(async () => {
        const now = await state();
        return now.status === undefined ? undefined : now;
      }, "the state");
      expect(readyOf(object)).toMatchObject({ status: "True", reason: "Serving" });
      expect(object.status?.conditions.map(({ type }) => type)).toEqual(["Ready", "DataPath", "Ipam", "Configuration"]);
      expect(object.status?.addresses[0]).toMatchObject({ allocated: 0, free: "65533" });
      const lease = await eventually(async () => {
        const { status, body } = await server.ask("GET", `${leases}/pipette-node.node-a`);
        return status === 200 ? body : undefined;
      }, "the Lease");
      expect(lease).toMatchObject({ spec: { holderIdentity: "node-a", leaseDurationSeconds: 60 } });
      const shown = await server.kubectl("get", "pipettenodes");
      expect(shown.split("\n")[0]?.split(/ +/)).toEqual([
        "NAME",
        "READY",
        "REASON",
        "VERSION",
        "DATA-PATH",
        "FREE",
        "AGE",
      ]);
      expect(shown).toMatch(/node-a +True +Serving .* bridge /);
    }, 60_000);

    test("its rights end at its own node", async () => {
      const refused = 'an agent writes the state of its own node only: its token is of a pod on node "node-a"';
      const other = await create("node-b");
      expect([other.status, other.body.message]).toEqual([422, expect.stringContaining(refused)]);
      expect((await server.ask("POST", nodes, { ...nodeB, spec: {} })).status).toBe(201);
      const patched = await server.ask("PATCH", `${nodes}/node-b/status`, { status: { system: "mine" } }, own);
      expect([patched.status, patched.body.message]).toEqual([422, expect.stringContaining(refused)]);
      const lease = (name: string) => ({ metadata: { name, namespace: "kube-system" }, spec: { holderIdentity: "x" } });
      expect((await server.ask("POST", leases, lease("pipette-node.node-b"), own)).status).toBe(422);
      expect((await server.ask("POST", leases, lease("kube-controller-manager"), own)).status).toBe(422);
      expect((await server.ask("DELETE", `${nodes}/node-a`, undefined, own)).status).toBe(403);
      expect((await server.ask("GET", nodes, undefined, own)).status).toBe(403);
      // Its own it may, with all that the kind has.
      const status = { system: "linux", peers: { reachable: 1, total: 2 } };
      const kept = await server.ask("PATCH", `${nodes}/node-a/status`, { status }, own);
      expect([kept.status, kept.body]).toEqual([
        200,
        expect.objectContaining({ status: expect.objectContaining(status) }),
      ]);
    }, 60_000);
    const nodeB = { apiVersion: "pipette.io/v1alpha1", kind: "PipetteNode", metadata: { name: "node-b" } };

    test("who says nothing is unknown, who comes back is known, and what is left of a node that is gone goes", async () => {
      await agent.end();
      const access = await kubeconfigAccess({ env: {}, file: server.kubeconfig });
      await using client = new ApiClient(access);
      const lines: string[] = [];
      const logger = createLogger("info", (line) => lines.push(line));
      const times = { everyMs: 200, silentMs: 1_000 };
      let isHolder = false;
      await using _ = new NodeKeeper({
        ...{ client, namespace: "kube-system", logger, times },
        isHolder: () => isHolder,
      });
      expect(readyOf(await state())?.status).toBe("True");
      isHolder = true;
      const silent = await eventually(async () => {
        const now = await state();
        return readyOf(now)?.status === "Unknown" ? now : undefined;
      }, "the silence");
      expect(silent.status?.conditions.map(({ status, reason }) => [status, reason])).toEqual(
        silent.status?.conditions.map(() => ["Unknown", "AgentSilent"]),
      );
      await eventually(async () => {
        const { body } = await server.ask("GET", "/apis/pipette.io/v1alpha1/pipettecontrollers/pipette-controller");
        const { status } = body as { status?: { nodes: number; silent: number } };
        return status?.nodes === 2 && status.silent === 2;
      }, "the sum");
      // It comes back with a pool that has nothing left.
      home.change({
        networks: [{ name: "pods", subnets: ["10.78.0.0/30"], bridge: bridgeName, exclude: ["10.78.0.2"] }],
      });
      await home.start({ PIPETTE_NODE_NAME: "node-a" });
      await eventually(async () => {
        const { items } = (await server.ask("GET", "/api/v1/namespaces/default/events")).body as {
          items?: { reason: string; involvedObject: { kind: string; name: string } }[];
        };
        return items?.some(({ reason, involvedObject: { kind, name } }) =>
          Bun.deepEquals([reason, kind, name], ["IpamNoNewPods", "Node", "node-a"]),
        );
      }, "the event of the Node");
      await eventually(async () => readyOf(await state())?.status === "True", "its return");
      await removeNode(server, "node-b");
      await eventually(async () => (await server.ask("GET", `${nodes}/node-b`)).status === 404, "the removal");
      expect((await server.ask("GET", `${nodes}/node-a`)).status).toBe(200);
      // Content that is the same is not written again, however often it is looked at.
      const { resourceVersion } = (await state()).metadata;
      expect(lines.filter((line) => line.includes("a node's agent is silent")).length).toBeLessThanOrEqual(3);
      expect((await state()).metadata.resourceVersion).toBe(resourceVersion);
    }, 60_000);
  },
);
