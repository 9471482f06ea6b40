import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { controllerAccess, NodePolicies } from "../../agent/policies/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { PolicyEnforcementInMemory } from "../fakes/policy-enforcement.ts";
import { eventually } from "../support/agent-process.ts";
import { freePorts } from "../support/free-ports.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { antreaController, antreaCrds } from "./assets.ts";
import { account, requestToken } from "./service-account.ts";

const namespace = "/api/v1/namespaces/x";
const policies = "/apis/networking.k8s.io/v1/namespaces/x/networkpolicies";
const rights = "/apis/rbac.authorization.k8s.io/v1";
/** What Antrea's agents may ask its controller for. */
const rules = [
  {
    apiGroups: ["controlplane.antrea.io"],
    resources: ["networkpolicies", "appliedtogroups", "addressgroups"],
    verbs: ["get", "list", "watch"],
  },
  {
    apiGroups: ["controlplane.antrea.io"],
    resources: ["networkpolicies/status", "nodestatssummaries"],
    verbs: ["create", "get"],
  },
];

describeWith(
  "our agent's policies, from a real controller of Antrea's",
  ["root", "kube-apiserver", "kubectl", "etcd", "openssl", "antrea-controller"],
  () => {
    const stack = new AsyncDisposableStack();
    const enforcement = new PolicyEnforcementInMemory();
    const lines: string[] = [];
    let server: ApiServer;
    let node: NodePolicies;

    beforeAll(async () => {
      const directory = mkdtempSync(join(tmpdir(), "pt-antrea-"));
      stack.defer(() => rmSync(directory, { recursive: true, force: true }));
      server = stack.use(await ApiServer.start());
      await eventually(
        async () => (await server.ask("GET", "/api/v1/namespaces/kube-system")).status === 200,
        "kube-system",
      );
      // As an API server makes it that knows clients by certificates.
      const authority = await Bun.file(server.ca).text();
      await server.create("/api/v1/namespaces/kube-system/configmaps", {
        metadata: { name: "extension-apiserver-authentication" },
        data: {
          "client-ca-file": authority,
          "requestheader-client-ca-file": authority,
          "requestheader-allowed-names": "[]",
          "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
          "requestheader-group-headers": '["X-Remote-Group"]',
          "requestheader-username-headers": '["X-Remote-User"]',
        },
      });
      const crds = antreaCrds();
      await server.apply(readdirSync(crds).map((file) => join(crds, file)));
      await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
      await server.create(account.replace(/\/[^/]*$/, ""), { metadata: { name: "pipette-agent" } });
      const subject = { kind: "ServiceAccount", name: "pipette-agent", namespace: "kube-system" };
      const role = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "antrea-agent" };
      await server.create(`${rights}/clusterroles`, { metadata: { name: role.name }, rules });
      await server.create(`${rights}/clusterrolebindings`, {
        metadata: { name: role.name },
        roleRef: role,
        subjects: [subject],
      });
      const [port = 0] = await freePorts(1);
      const config = {
        clientConnection: { kubeconfig: server.kubeconfig },
        apiPort: port,
        selfSignedCert: true,
        enablePrometheusMetrics: false,
      };
      writeFileSync(join(directory, "controller.conf"), JSON.stringify(config));
      // It keeps its certificates below /run: in one of its own.
      const inOwnRun = 'mount -t tmpfs tmpfs /run && exec "$@"';
      const command = [antreaController(), "--config", join(directory, "controller.conf"), "--logtostderr"];
      const environment = ["env", "POD_NAMESPACE=kube-system", "POD_NAME=antrea-controller"];
      const child = Bun.spawn(
        [
          "setpriv",
          "--pdeathsig",
          "KILL",
          "unshare",
          "--mount",
          "sh",
          "-c",
          inOwnRun,
          "sh",
          ...environment,
          ...command,
        ],
        { stdin: "ignore", stdout: "ignore", stderr: Bun.file("/tmp/antrea.log") },
      );
      stack.defer(async () => {
        child.kill("SIGKILL");
        await child.exited;
      });
      const ca = join(directory, "ca.crt");
      await eventually(async () => {
        const { status, body } = await server.ask("GET", "/api/v1/namespaces/kube-system/configmaps/antrea-ca");
        if (status === 200) writeFileSync(ca, (body["data"] as Record<string, string>)["ca.crt"] ?? "");
        return status === 200;
      }, "the authority of Antrea's controller");
      const token = join(directory, "token");
      writeFileSync(token, await requestToken(server, {}), { mode: 0o600 });
      node = stack.use(
        new NodePolicies({
          ...{ node: "n1", dataDir: directory, waitMs: 15_000, enforcement },
          connect: controllerAccess(
            {
              ...{ controller: `https://127.0.0.1:${port}`, namespace: "kube-system", ca, token },
              serverName: "antrea.kube-system.svc",
            },
            {},
          ),
          logger: createLogger("info", (line) => lines.push(line)),
          reportMs: 1000,
        }),
      );
      await node.prepare([]);
      await node.begin([]);
      await eventually(() => lines.some((line) => line.includes("has told all")), "all that Antrea's controller has");
    }, 180_000);
    afterAll(() => stack.disposeAsync());

    const owner = (name: string) => ({ network: "pods", sandboxId: name, ifname: "eth0" });

    async function addPod(name: string, ip: string): Promise<string> {
      await server.ask("POST", `${namespace}/serviceaccounts`, { metadata: { name: "default" } });
      const { metadata } = (await server.create(`${namespace}/pods`, {
        metadata: { name, labels: { app: name } },
        spec: {
          nodeName: "n1",
          automountServiceAccountToken: false,
          containers: [{ name: "c", image: "none", ports: [{ name: "sql", containerPort: 5432 }] }],
        },
      })) as { metadata: { uid: string } };
      const status = { phase: "Running", podIP: ip, podIPs: [{ ip }] };
      await server.ask("PATCH", `${namespace}/pods/${name}/status`, { status });
      const { uid } = metadata;
      await node.admit(owner(name), { namespace: "x", name, uid });
      await node.settle(owner(name));
      return uid;
    }

    /** Whether db lets the address in. */
    const lets = (from: string, port = 5432): boolean => {
      const other = parseIp(from);
      if (other === undefined) throw new Error(`"${from}" is no address`);
      return enforcement.allows(owner("db"), { direction: "ingress", other, protocol: "TCP", port });
    };

    test("pods, policies, named ports, labels and the end of a policy are followed, and it is told what is in force", async () => {
      await addPod("db", "10.80.0.1");
      await addPod("web", "10.80.0.2");
      await addPod("other", "10.80.0.3");
      expect([lets("10.80.0.2"), lets("10.80.0.3")]).toEqual([true, true]);
      await server.create(policies, {
        metadata: { name: "web-only" },
        spec: {
          podSelector: { matchLabels: { app: "db" } },
          ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }], ports: [{ port: "sql" }] }],
        },
      });
      await eventually(() => !lets("10.80.0.3"), "the isolation");
      await eventually(() => lets("10.80.0.2"), "what the rule allows");
      expect(lets("10.80.0.2", 80)).toBe(false);
      await server.ask("PATCH", `${namespace}/pods/other`, { metadata: { labels: { app: "web" } } });
      await eventually(() => lets("10.80.0.3"), "the new member");
      await server.ask("PATCH", `${namespace}/pods/web`, { metadata: { labels: { app: "none" } } });
      await eventually(() => !lets("10.80.0.2"), "the end of a member");
      expect(await node.degraded([])).toEqual([]);
      await server.ask("DELETE", `${policies}/web-only`);
      await eventually(() => lets("10.80.0.2") && lets("10.80.0.2", 80), "the end of the policy");
    });
  },
);
