import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { findHelm } from "../../build/helm.ts";
import { template } from "../../build/manifests.ts";
import { objectsIn, pathOf } from "../manifests/manifest.ts";
import { eventually } from "../support/agent-process.ts";
import type { ApiServer } from "./api-server.ts";

/** The chart with a port for operators: who may what. */
export async function shippedWithMetrics(server: ApiServer): Promise<void> {
  await eventually(
    async () => (await server.ask("GET", "/api/v1/namespaces/kube-system")).status === 200,
    "kube-system",
  );
  const objects = objectsIn(await template(findHelm() ?? "", ["--set", "metrics.enabled=true"]));
  for (const each of objects)
    if (/^(ServiceAccount|ClusterRole|ClusterRoleBinding|Role)$/.test(each.kind))
      await server.create(pathOf(each), each);
}

/** An agent's pod, as the DaemonSet makes it, and as its kubelet reports it. */
export async function agentPod(server: ApiServer, node: string, podIP: string, containerPort: number): Promise<void> {
  const labels = { "app.kubernetes.io/name": "pipette", "app.kubernetes.io/component": "agent" };
  const metadata = { name: `agent-of-${node}`, namespace: "kube-system", labels };
  const ports = [{ name: "https", containerPort }];
  const spec = {
    nodeName: node,
    serviceAccountName: "pipette-agent",
    hostNetwork: true,
    containers: [{ name: "agent", image: "none", ports }],
  };
  const path = "/api/v1/namespaces/kube-system/pods";
  await server.create(path, { metadata, spec });
  const conditions = [{ type: "Ready", status: "True" }];
  const status = { phase: "Running", podIP, podIPs: [{ ip: podIP }], conditions };
  expect((await server.ask("PATCH", `${path}/${metadata.name}/status`, { status })).status).toBe(200);
}

/** Somebody with these roles of the chart's, and a kubeconfig of their own in the directory, under their name. */
export async function person(
  server: ApiServer,
  directory: string,
  name: string,
  roles: readonly string[],
): Promise<void> {
  const account = "/api/v1/namespaces/default/serviceaccounts";
  await server.create(account, { metadata: { name, namespace: "default" } });
  const subjects = [{ kind: "ServiceAccount", name, namespace: "default" }];
  const root = "/apis/rbac.authorization.k8s.io/v1";
  for (const role of roles)
    await server.create(`${root}/namespaces/kube-system/rolebindings`, {
      metadata: { name: `${role}-${name}`, namespace: "kube-system" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role },
      subjects,
    });
  if (roles.length > 0)
    await server.create(`${root}/clusterrolebindings`, {
      metadata: { name: `nodes-${name}` },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "pipette-viewer-nodes" },
      subjects,
    });
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const answer = await server.create(`${account}/${name}/token`, request);
  const config = JSON.parse(readFileSync(server.kubeconfig, "utf8"));
  config.users[0].user.token = (answer["status"] as { token: string }).token;
  writeFileSync(join(directory, name), JSON.stringify(config), { mode: 0o600 });
}
