import { readFile } from "node:fs/promises";
import { CniCode, CniError } from "../errors.ts";

/** Where an API server is, and who asks it: what a kubeconfig file or a pod's service account says. */
export interface ClusterAccess {
  /** `https://HOST:PORT`, with a path where the server stands behind one. */
  readonly server: string;
  /** Read again for every request, because certificates are rotated. */
  tls(): Promise<TlsMaterial>;
  readonly credentials: Credentials;
  /** The proxy of this access, used instead of HTTPS_PROXY and the like. */
  readonly proxy?: string;
  /** The default namespace. */
  readonly namespace?: string;
}

/** In PEM. */
export interface TlsMaterial {
  /** The CA that signed the server's certificate; absent: those that the system trusts. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the server's certificate has to be for, where it is not that of the URL. */
  readonly serverName?: string;
  /** Accepts any server certificate; only if a kubeconfig file says so. */
  readonly insecure?: boolean;
}

/** The client's credentials. They appear in no error and no log. */
export interface Credentials {
  /** The value of the header `authorization`; absent: the client uses a certificate, or is anonymous. */
  authorization(): Promise<string | undefined>;
  /** A certificate that comes together with tokens, as some exec plugins give. */
  certificate?(): Promise<Pick<TlsMaterial, "cert" | "key">>;
  /** Called when the server refused the credentials; answers whether to try again with new ones. */
  renew(): Promise<boolean>;
}

export const anonymous: Credentials = {
  authorization: () => Promise.resolve(undefined),
  renew: () => Promise.resolve(false),
};

const tokenShape = /^[\x21-\x7e]{1,65536}$/;

/** @param source where the token comes from; the error names it and does not quote the token */
export function bearer(text: string, source: string): string {
  const token = text.trim();
  if (tokenShape.test(token)) return `Bearer ${token}`;
  throw new Error(`${source} holds no token`);
}

export interface ServiceAccountOptions {
  /** `https://HOST:PORT`; absent: what a pod is told of its own cluster. */
  readonly server?: string;
  /** Files: who this is, and who signs the server's certificate. They are rotated, so each request reads them. */
  readonly token?: string;
  readonly ca?: string;
}

const inCluster = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The access of a pod, or of a process with files like a pod's.
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

/** The kubelet replaces a pod's token long before it expires, so it is read for each request. */
export function tokenFile(path: string): Credentials {
  let last: string | undefined;
  const read = async (): Promise<string> => bearer(await readFile(path, "utf8"), `"${path}"`);
  return {
    authorization: async () => {
      last = await read();
      return last;
    },
    // The token may have been replaced while the request was under way.
    renew: async () => (await read()) !== last,
  };
}
