import { readFile } from "node:fs/promises";
import {
  ApiClient,
  type ApiObject,
  type ClusterAccess,
  mapIn,
  mapsIn,
  type ServiceAccountOptions,
  serviceAccountAccess,
  type TlsMaterial,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import type { PoliciesConfig } from "../config/agent-config.ts";

/** What our controller is known by in a cluster. */
const service = "pipette-controller";
const caConfigMap = `${service}-ca`;
const usualNamespace = "kube-system";

/**
 * Finds the controller: the one that is configured, or any that stands behind its Service. Its pods are asked themselves,
 * so that neither kube-proxy nor our own services are needed for policies.
 * @param account files of the account that asks the API server; absent: a pod's own
 * @returns a client of the controller as it is now, for its caller to close
 */
export function controllerAccess(
  config: Omit<PoliciesConfig, "waitMs" | "log">,
  env: Readonly<Record<string, string | undefined>>,
  account: Pick<ServiceAccountOptions, "token" | "ca"> = {},
): () => Promise<ApiClient> {
  const { controller, namespace, serverName = `${service}.${namespace}.svc`, token, ca } = config;
  const inCluster = async <T>(ask: (api: ApiClient, namespace: string) => Promise<T>): Promise<T> => {
    await using api = new ApiClient(serviceAccountAccess(account, env, "policies.controller"), { env });
    return await ask(api, namespace);
  };
  return async () => {
    const server = controller ?? (await inCluster(readyEndpoint));
    const authorities =
      ca === undefined && server.startsWith("https:") ? await inCluster(publishedAuthorities) : undefined;
    const { credentials } = serviceAccountAccess(
      { ...account, server, ...(token === undefined ? {} : { token }) },
      env,
      "",
    );
    const tls = async () => {
      const read = authorities ?? (ca === undefined ? undefined : await readFile(ca, "utf8"));
      return { serverName, ...(read === undefined ? {} : { ca: read }) };
    };
    // No proxy stands between a node and its controller.
    return new ApiClient({ server, tls, credentials });
  };
}

/**
 * The controller for somebody who is no node: found by the API server, and asked with what he has for that.
 * @returns a client, for its caller to close
 * @throws {Error} where there is none, or it cannot be known by its certificate
 */
export async function controllerAsked(
  api: ApiClient,
  { tls, credentials }: ClusterAccess,
  namespace = usualNamespace,
): Promise<ApiClient> {
  const [server, ca] = [await readyEndpoint(api, namespace), await publishedAuthorities(api, namespace)];
  const material = async (): Promise<TlsMaterial> => {
    const { cert, key } = await tls();
    const serverName = `${service}.${namespace}.svc`;
    return { ca, serverName, ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  };
  return new ApiClient({ server, tls: material, credentials });
}

/** @throws {Error} where none is ready */
async function readyEndpoint(api: ApiClient, namespace: string): Promise<string> {
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const slices = await api.get({
    path: `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=${selector}`,
    action: `list the endpoints of Service "${namespace}/${service}"`,
  });
  const ready = mapsIn(slices, "items").flatMap(endpointsIn);
  // Any of several: all say the same, and each attempt may find another.
  const [one] = ready.slice(Math.floor(Math.random() * ready.length));
  if (one !== undefined) return one;
  throw new Error(`Service "${namespace}/${service}" has no endpoint that is ready, wanted a controller that runs`);
}

function endpointsIn(slice: ApiObject): string[] {
  const port = mapsIn(slice, "ports")[0]?.["port"];
  if (typeof port !== "number") return [];
  return mapsIn(slice, "endpoints")
    .filter((endpoint) => mapIn(endpoint, "conditions")["ready"] !== false)
    .flatMap(({ addresses }) => (Array.isArray(addresses) ? addresses : []))
    .filter((address) => typeof address === "string")
    .map((address) => `https://${address.includes(":") ? `[${address}]` : address}:${port}`);
}

/** @throws {Error} where it has published none yet */
async function publishedAuthorities(api: ApiClient, namespace: string): Promise<string> {
  const configMap = await api.get({
    path: `/api/v1/namespaces/${namespace}/configmaps/${caConfigMap}`,
    action: `read configmap "${namespace}/${caConfigMap}"`,
  });
  const read = textIn(mapIn(configMap, "data"), "ca.crt");
  if (read !== undefined) return read;
  throw new Error(`configmap "${namespace}/${caConfigMap}" has no "ca.crt"`);
}
