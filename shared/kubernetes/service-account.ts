import { readFile } from "node:fs/promises";
import { CniCode, CniError } from "../errors.ts";
import { bearer, type ClusterAccess, type Credentials } from "./access.ts";

export interface ServiceAccountOptions {
  /** `https://HOST:PORT`; absent: what a pod is told of its own cluster. */
  readonly server?: string;
  /** Files: who this is, and who signs the server's certificate. They are rotated, so each request reads them. */
  readonly token?: string;
  readonly ca?: string;
}

const inCluster = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The access of a pod, or of whoever has files like a pod's.
 * @param setting how the caller's configuration calls the server, for the error
 * @throws {CniError} code 7 where nothing says where the server is
 */
export function serviceAccountAccess(
  options: ServiceAccountOptions,
  env: Readonly<Record<string, string | undefined>>,
  setting: string,
): ClusterAccess {
  const [host, port] = [env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] ?? "443"];
  const own = host === undefined ? undefined : `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const server = options.server ?? own;
  if (server === undefined)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot ask the API server of Kubernetes: nothing says where it is, wanted "${setting}", or a pod of the cluster`,
    );
  const ca = options.ca ?? `${inCluster}/ca.crt`;
  return {
    server,
    tls: async () => ({ ca: await readFile(ca, "utf8") }),
    credentials: tokenFile(options.token ?? `${inCluster}/token`),
  };
}

/** The kubelet replaces a pod's token long before it ends: whoever reads it for each request has the right one. */
export function tokenFile(path: string): Credentials {
  let last: string | undefined;
  const read = async (): Promise<string> => bearer(await readFile(path, "utf8"), `"${path}"`);
  return {
    authorization: async () => {
      last = await read();
      return last;
    },
    // A request may have been on its way while the token was replaced.
    renew: async () => (await read()) !== last,
  };
}
