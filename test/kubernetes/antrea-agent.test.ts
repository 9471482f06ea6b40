import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { antreaCheckout } from "./assets.ts";
import { ControllerProcess, installController } from "./controller-process.ts";
import { newEnoughGo } from "./go.ts";
import { addNode } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

const x = "/api/v1/namespaces/x";
/** Of a cold build on a machine that does other things too. */
const longestBuildMs = 20 * 60_000;

describeWith(
  "a client of Antrea's own making that follows our controller",
  ["linux", "kube-apiserver", "etcd", "openssl", "antrea-controller"],
  () => {
    const stack = new AsyncDisposableStack();
    let server: ApiServer;
    let agent: AgentProcess;

    const addPod = async (name: string, node: string, ip: string): Promise<void> => {
      await server.create(`${x}/pods`, {
        metadata: { name, labels: { app: name } },
        spec: { nodeName: node, automountServiceAccountToken: false, containers: [{ name: "c", image: "none" }] },
      });
      const status = { phase: "Running", podIP: ip, podIPs: [{ ip }] };
      await server.ask("PATCH", `${x}/pods/${name}/status`, { status });
    };

    beforeAll(async () => {
      compileExecutables();
      const directory = mkdtempSync(join(tmpdir(), "pt-antrea-"));
      stack.defer(() => rmSync(directory, { recursive: true, force: true }));
      const [program, ca, token] = ["agent", "ca.crt", "token"].map((name) => join(directory, name)) as [
        string,
        string,
        string,
      ];
      const words = [
        "build",
        "-buildvcs=false",
        "-mod=mod",
        "-o",
        program,
        join(import.meta.dirname, "antrea-agent/main.go"),
      ];
      await execa(await newEnoughGo(), words, { cwd: antreaCheckout(), timeout: longestBuildMs });
      server = stack.use(await ApiServer.start());
      await installController(server);
      await addNode(server, "node-a", "192.0.2.1", "10.80.0.0/24");
      await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
      await server.ask("POST", `${x}/serviceaccounts`, { metadata: { name: "default" } });
      await addPod("db", "node-a", "10.80.0.1");
      await server.create("/apis/networking.k8s.io/v1/namespaces/x/networkpolicies", {
        metadata: { name: "web-only" },
        spec: {
          podSelector: { matchLabels: { app: "db" } },
          ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }], ports: [{ port: 5432 }] }],
        },
      });
      // Its agents' role, with what ours do not ask for.
      const role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/pipette-agent-policies";
      const rules = (await server.ask("GET", role)).body["rules"] as { resources: string[] }[];
      const more = ["egressgroups", "supportbundlecollections"];
      const wider = rules.map((rule) =>
        rule.resources.includes("addressgroups") ? { ...rule, resources: [...rule.resources, ...more] } : rule,
      );
      await server.ask("PATCH", role, { rules: wider });
      const controller = stack.use(await ControllerProcess.start(server, ["--name", "antrea.kube-system.svc"]));
      await controller.logged("the policies are computed");
      writeFileSync(ca, await controller.ca());
      writeFileSync(token, await agentToken(server, "node-a"), { mode: 0o600 });
      agent = new AgentProcess([program, "--server", controller.url, "--ca", ca, "--token", token, "--node", "node-a"]);
      stack.defer(async () => {
        await agent.end("SIGKILL");
      });
    }, longestBuildMs + 240_000);
    afterAll(() => stack.disposeAsync());

    const heard = (wanted: object): Promise<unknown> =>
      agent.logged((line) => Object.entries(wanted).every(([key, value]) => line[key] === value));

    test("understands all that it is told, and is understood", async () => {
      await heard({ watch: "networkpolicies", type: "ADDED", kind: "*v1beta2.NetworkPolicy", of: "x/web-only" });
      await heard({ watch: "networkpolicies", type: "TOLD" });
      await heard({ watch: "addressgroups", type: "ADDED", kind: "*v1beta2.AddressGroup", members: 0 });
      await heard({ watch: "appliedtogroups", type: "ADDED", kind: "*v1beta2.AppliedToGroup", members: 1 });
      for (const watch of [
        "networkpolicies",
        "addressgroups",
        "appliedtogroups",
        "egressgroups",
        "supportbundlecollections",
      ])
        await heard({ watch, type: "BOOKMARK" });
      await addPod("web", "node-b", "10.80.1.1");
      await heard({
        watch: "addressgroups",
        type: "MODIFIED",
        kind: "*v1beta2.AddressGroupPatch",
        members: 1,
        removed: 0,
      });
      await server.ask("DELETE", "/apis/networking.k8s.io/v1/namespaces/x/networkpolicies/web-only");
      await heard({ watch: "networkpolicies", type: "DELETED" });
      await heard({ watch: "addressgroups", type: "DELETED" });
      expect(agent.lines.filter((line) => line["error"] !== undefined)).toEqual([]);
    });
  },
);
