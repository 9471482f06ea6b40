import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";

const x = "/api/v1/namespaces/x";

describeWith("pipette policy at a real API server", ["linux", "kube-apiserver", "etcd", "openssl"], () => {
  let server: ApiServer;

  beforeAll(async () => {
    compileExecutables();
    server = await ApiServer.start();
    await server.create("/api/v1/namespaces", { metadata: { name: "x", labels: { team: "red" } } });
    await server.create(`${x}/serviceaccounts`, { metadata: { name: "default" } }).catch(() => undefined);
    for (const [i, name] of ["web", "db", "other"].entries()) await addPod(name, `10.80.0.${i + 1}`);
    await server.create(`${x}/services`, {
      metadata: { name: "db" },
      spec: { ports: [{ name: "sql", port: 5432, targetPort: "sql" }] },
    });
    await server.create("/apis/discovery.k8s.io/v1/namespaces/x/endpointslices", {
      metadata: { name: "db-1", labels: { "kubernetes.io/service-name": "db" } },
      addressType: "IPv4",
      ports: [{ name: "sql", port: 15_432 }],
      endpoints: [{ addresses: ["10.80.0.2"], targetRef: { kind: "Pod", name: "db" } }],
    });
    await server.create("/apis/networking.k8s.io/v1/namespaces/x/networkpolicies", {
      metadata: { name: "web-only" },
      spec: {
        podSelector: { matchLabels: { app: "db" } },
        ingress: [{ from: [{ podSelector: { matchLabels: { app: "web" } } }], ports: [{ port: "sql" }] }],
      },
    });
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  async function addPod(name: string, ip: string): Promise<void> {
    const ports = [{ name: "sql", containerPort: 15_432 }];
    await eventually(async () => {
      const { status } = await server.ask("POST", `${x}/pods`, {
        metadata: { name, labels: { app: name } },
        spec: {
          nodeName: "n1",
          automountServiceAccountToken: false,
          containers: [{ name: "c", image: "none", ports }],
        },
      });
      return status === 201;
    }, `pod ${name}`);
    const status = { phase: "Running", podIP: ip, podIPs: [{ ip }] };
    await server.ask("PATCH", `${x}/pods/${name}/status`, { status });
  }

  async function policy(args: readonly string[], input = ""): Promise<{ status: number; first: string; all: string }> {
    const child = Bun.spawn([join(executables, "pipette"), "policy", ...args], {
      env: { KUBECONFIG: server.kubeconfig },
      stdin: new TextEncoder().encode(input),
      stdout: "pipe",
      stderr: "pipe",
    });
    const all = (await child.stdout.text()) + (await child.stderr.text());
    return { status: await child.exited, first: all.split("\n")[0] ?? "", all };
  }

  test.each([
    [
      ["web", "db", "--port", "sql"],
      0,
      "x/web may reach x/db at TCP 15432: x/web-only ingress[0] allows what x/db receives",
    ],
    [
      ["web", "service/db", "--port", "5432"],
      0,
      "x/web may reach service x/db at TCP 15432: x/web-only ingress[0] allows what x/db receives",
    ],
    [["10.80.0.3", "10.80.0.2"], 1, "x/other may not reach x/db: x/web-only isolates x/db in what it receives"],
    [
      ["web", "8.8.8.8", "--port", "53"],
      0,
      "x/web may reach 8.8.8.8 at TCP 53: no policy isolates x/web in what it sends",
    ],
  ])("why %j", async (args, status, sentence) => {
    const told = await policy(["why", "-n", "x", ...args]);
    expect(told).toMatchObject({ status, first: expect.stringContaining(sentence) });
  });

  test("what would change, and what there is", async () => {
    const spec = { podSelector: {}, policyTypes: ["Egress"] };
    const kind = { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" };
    const told = await policy(
      ["what-if", "-f", "-"],
      JSON.stringify({ ...kind, metadata: { name: "quiet", namespace: "x" }, spec }),
    );
    expect(told).toMatchObject({ status: 1, first: "x/quiet: new" });
    expect((await policy(["list"])).all).toMatch(/^x\/web-only +pods with app=db +1 +ingress +\?$/m);
    const shown = await policy(["show", "x/web-only"]);
    expect(shown.all).toContain('ingress[0]: from pods with app=web of namespace x, at TCP "sql"\n');
    expect(shown.all).toContain("ingress[0], ports[0]: 15432 of 1 pod\n");
  });
});
