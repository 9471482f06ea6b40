import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findHelm } from "../../build/helm.ts";
import { template } from "../../build/manifests.ts";
import { objectsIn, pathOf } from "../manifests/manifest.ts";
import { eventually } from "../support/agent-process.ts";
import type { ApiServer } from "./api-server.ts";

const accounts = "/api/v1/namespaces/default/serviceaccounts";
const rbac = "/apis/rbac.authorization.k8s.io/v1";

/** The chart's accounts and their rights. @param on its switches @param more other kinds of objects */
export async function shipChart(server: ApiServer, on: readonly string[], more: readonly string[] = []): Promise<void> {
  await eventually(
    async () => (await server.ask("GET", "/api/v1/namespaces/kube-system")).status === 200,
    "kube-system",
  );
  const values = on.flatMap((name) => ["--set", `${name}=true`]);
  const kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", ...more];
  for (const each of objectsIn(await template(findHelm() ?? "", values)))
    if (kinds.includes(each.kind)) await server.create(pathOf(each), each);
}

/** Where a node's agent listens for operators. */
export interface AgentPlace {
  readonly node: string;
  readonly podIP: string;
  readonly port: number;
}

/** An agent's pod, as the DaemonSet makes it, and as its kubelet reports it. @param status more of it */
export async function agentPod(
  server: ApiServer,
  { node, podIP, port }: AgentPlace,
  status: object = {},
): Promise<void> {
  const labels = { "app.kubernetes.io/name": "pipette", "app.kubernetes.io/component": "agent" };
  const metadata = { name: `agent-of-${node}`, namespace: "kube-system", labels };
  const containers = [{ name: "agent", image: "none", ports: [{ name: "https", containerPort: port }] }];
  const spec = { nodeName: node, serviceAccountName: "pipette-agent", hostNetwork: true, containers };
  const path = "/api/v1/namespaces/kube-system/pods";
  await server.create(path, { metadata, spec });
  const conditions = [{ type: "Ready", status: "True" }];
  const whole = { phase: "Running", podIP, podIPs: [{ ip: podIP }], conditions, ...status };
  const answer = await server.ask("PATCH", `${path}/${metadata.name}/status`, { status: whole });
  if (answer.status !== 200) throw new Error(`The API server answers ${answer.status}: ${answer.body.message}`);
}

/** An account with these roles of the chart's. */
export async function account(server: ApiServer, name: string, roles: readonly string[]): Promise<void> {
  await server.create(accounts, { metadata: { name, namespace: "default" } });
  const subjects = [{ kind: "ServiceAccount", name, namespace: "default" }];
  const roleOf = (kind: string, role: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name: role });
  for (const role of roles)
    await server.create(`${rbac}/namespaces/kube-system/rolebindings`, {
      metadata: { name: `${role}-${name}`, namespace: "kube-system" },
      roleRef: roleOf("Role", role),
      subjects,
    });
  if (roles.length > 0)
    await server.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: `nodes-${name}` },
      roleRef: roleOf("ClusterRole", "pipette-viewer-nodes"),
      subjects,
    });
}

/** An account's token, as `kubectl create token` asks for it. */
export async function tokenOf(server: ApiServer, name: string, spec: object = {}): Promise<string> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
  return ((await server.create(`${accounts}/${name}/token`, request))["status"] as { token: string }).token;
}

/** Somebody with these roles, and a kubeconfig of their own. @returns its path, which ends with their name */
export async function person(
  server: ApiServer,
  directory: string,
  name: string,
  roles: readonly string[],
): Promise<string> {
  await account(server, name, roles);
  const config = JSON.parse(readFileSync(server.kubeconfig, "utf8"));
  config.users[0].user.token = await tokenOf(server, name);
  const file = join(directory, name);
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
