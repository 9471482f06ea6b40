/** Where an API server is, and who asks it: what a kubeconfig file or a pod's service account says. */
export interface ClusterAccess {
  /** `https://HOST:PORT`, with a path where the server stands behind one. */
  readonly server: string;
  /** Asked for anew by every request: certificates are rotated. */
  tls(): Promise<TlsMaterial>;
  readonly credentials: Credentials;
  /** What this access wants in place of HTTPS_PROXY and its like. */
  readonly proxy?: string;
  /** The namespace of whoever names none. */
  readonly namespace?: string;
}

/** In PEM. */
export interface TlsMaterial {
  /** Who may have signed the server's certificate; absent: whom the system trusts. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** The name that the server's certificate has to be for, where it is not that of the URL. */
  readonly serverName?: string;
  /** Believes any server; only where a kubeconfig file says so. */
  readonly insecure?: boolean;
}

/** Who asks. What it holds appears in no error and no log. */
export interface Credentials {
  /** The value of the header `authorization`; absent: a certificate says it, or nobody. */
  authorization(): Promise<string | undefined>;
  /** A certificate that comes together with tokens, as some exec plugins give. */
  certificate?(): Promise<Pick<TlsMaterial, "cert" | "key">>;
  /** The server did not accept it: whether the next request may fare better. */
  renew(): Promise<boolean>;
}

export const anonymous: Credentials = {
  authorization: () => Promise.resolve(undefined),
  renew: () => Promise.resolve(false),
};

const tokenShape = /^[\x21-\x7e]{1,65536}$/;

/** @param source what holds it, for the error, which does not quote it */
export function bearer(text: string, source: string): string {
  const token = text.trim();
  if (tokenShape.test(token)) return `Bearer ${token}`;
  throw new Error(`${source} holds no token`);
}
