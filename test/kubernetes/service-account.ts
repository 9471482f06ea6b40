import { createPrivateKey, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiServer } from "./api-server.ts";

/** The account that conf/kubernetes gives the agents. */
export const account = "/api/v1/namespaces/kube-system/serviceaccounts/pipette-agent";

/** A pod of the agent's on a node, as the DaemonSet makes it; answers the token that the kubelet would give it. */
export async function agentToken(server: ApiServer, node: string): Promise<string> {
  const name = `agent-${node}`;
  const metadata = { name, namespace: "kube-system" };
  const spec = {
    serviceAccountName: "pipette-agent",
    nodeName: node,
    containers: [{ name: "agent", image: "none" }],
  };
  const pod = await server.create("/api/v1/namespaces/kube-system/pods", { metadata, spec });
  const { uid } = pod["metadata"] as { uid: string };
  return requestToken(server, { boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } });
}

/** How an agent on a node asks the API server, as agent.yaml has it. @param directory where its token is kept */
export async function agentAccess(
  server: ApiServer,
  node: string,
  directory: string,
): Promise<{ readonly server: string; readonly ca: string; readonly token: string }> {
  const token = join(directory, node);
  writeFileSync(token, await agentToken(server, node), { mode: 0o600 });
  return { server: server.url, ca: server.ca, token };
}

/** By the TokenRequest API. @param spec `{}`: a token that is of no pod */
export async function requestToken(server: ApiServer, spec: object): Promise<string> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
  const answer = await server.create(`${account}/token`, request);
  return (answer["status"] as { token: string }).token;
}

/** The same token, signed by the server's own key, with another end: the API itself gives none for under ten minutes. */
export function endingAt(server: ApiServer, token: string, unixSeconds: number): string {
  const [head = "", claims = ""] = token.split(".");
  const changed = { ...JSON.parse(Buffer.from(claims, "base64url").toString()), exp: Math.floor(unixSeconds) };
  const signed = `${head}.${Buffer.from(JSON.stringify(changed)).toString("base64url")}`;
  const key = { key: createPrivateKey(server.accountsKey), dsaEncoding: "ieee-p1363" } as const;
  return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
}
