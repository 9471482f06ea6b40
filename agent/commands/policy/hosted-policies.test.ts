import { expect, test } from "vitest";
import type { ClusterAccess } from "../../../shared/kubernetes/mod.ts";
import { ScriptedApiServer } from "../../../test/fakes/kubernetes/scripted-api-server.ts";
import { runHostedPolicy } from "./hosted-policies.ts";

const accessTo = (server: string): ClusterAccess => ({
  server,
  tls: async () => ({}),
  credentials: { authorization: async () => undefined, renew: async () => false },
});

/** So many pods that every policy tells apart. */
async function clusterOf(count: number): Promise<ScriptedApiServer> {
  const api = await ScriptedApiServer.start();
  const metadata = (name: string) => ({ name, namespace: "x", uid: `uid-${name}`, labels: { app: name } });
  const names = Array.from({ length: count }, (_, i) => `p${i}`);
  api.objects.set(
    "pods",
    names.map((name, i) => ({
      metadata: metadata(name),
      spec: { nodeName: "n" },
      status: { phase: "Running", podIP: `10.0.${i >> 8}.${i & 255}`, podIPs: [{ ip: `10.0.${i >> 8}.${i & 255}` }] },
    })) as never,
  );
  api.objects.set("namespaces", [{ metadata: { name: "x", uid: "uid-x", labels: {} } }] as never);
  api.objects.set(
    "networkpolicies",
    names.map((name) => ({
      metadata: metadata(name),
      spec: { podSelector: { matchLabels: { app: name } }, policyTypes: ["Ingress", "Egress"] },
    })) as never,
  );
  return api;
}

test("a question is answered in the server's own process, as the command answers it", async () => {
  await using api = await clusterOf(3);
  const answer = await runHostedPolicy(["policy", "matrix", "--json"], {
    ...{ access: accessTo(api.url), env: {}, input: "", maxBytes: 100_000 },
  });
  expect([answer.status, answer.stderr]).toEqual([0, ""]);
  expect(JSON.parse(answer.stdout)).toMatchObject({ rows: ["+--", "-+-", "--+"], omitted: 0 });
});

test("one that would keep the others waiting ends, and says where it is answered", async () => {
  await using api = await clusterOf(1_500);
  const answer = await runHostedPolicy(["policy", "matrix", "--json"], {
    ...{ access: accessTo(api.url), env: {}, input: "", maxBytes: 100_000 },
  });
  expect([answer.status, answer.stdout]).toEqual([2, ""]);
  expect(answer.stderr).toBe(
    "Cannot compare the pods: it takes more than 500 ms, and others are served here as well, wanted the command at a terminal\n",
  );
}, 60_000);

test("it prints no more than was asked for, and runs nothing else", async () => {
  await using api = await clusterOf(3);
  const options = { access: accessTo(api.url), env: {}, input: "", maxBytes: 10 };
  expect((await runHostedPolicy(["policy", "matrix", "--json"], options)).status).not.toBe(0);
  const other = await runHostedPolicy(["doctor", "--json"], options);
  expect(other).toMatchObject({ stdout: "", failure: '"doctor" is not one of "pipette policy"' });
});
