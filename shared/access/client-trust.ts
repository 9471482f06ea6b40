import { X509Certificate } from "node:crypto";
import { type ApiObject, mapIn, type Resource, textIn } from "../kubernetes/mod.ts";
import { parseJson } from "../schema/json.ts";
import type { User } from "./user.ts";

/** Whom the API server trusts to say who asks: ConfigMap kube-system/extension-apiserver-authentication. */
export interface ClientTrust {
  /** PEM; empty: no certificate of a client says who it is. */
  readonly clientCa: string;
  /** Of the aggregation layer, which asks in the name of others and says so in headers. */
  readonly proxyCa: string;
  /** Empty: any. */
  readonly proxyNames: readonly string[];
  readonly userHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraPrefixes: readonly string[];
}

export const noTrust: ClientTrust = {
  clientCa: "",
  proxyCa: "",
  proxyNames: [],
  userHeaders: [],
  groupHeaders: [],
  extraPrefixes: [],
};

export const trustConfigMap = { namespace: "kube-system", name: "extension-apiserver-authentication" };

/** What is kept of the ConfigMap. */
export const clientTrusts: Resource<ClientTrust> = { version: "v1", plural: "configmaps", project: readTrust };

function readTrust(object: ApiObject): ClientTrust {
  const data = mapIn(object, "data");
  const names = (key: string): string[] => listOf(textIn(data, key));
  return {
    clientCa: textIn(data, "client-ca-file") ?? "",
    proxyCa: textIn(data, "requestheader-client-ca-file") ?? "",
    proxyNames: names("requestheader-allowed-names"),
    userHeaders: names("requestheader-username-headers"),
    groupHeaders: names("requestheader-group-headers"),
    extraPrefixes: names("requestheader-extra-headers-prefix"),
  };
}

/** A list of texts in JSON. One that cannot be read names nothing that can be. */
function listOf(text = "[]"): string[] {
  try {
    const value = parseJson(text);
    if (Array.isArray(value)) return value.map(String);
  } catch {
    // As below.
  }
  return ["\0"];
}

/** A request, as far as it says who asks. */
export interface Asker {
  /** The client's certificate in DER, where its chain, its dates and its purpose are in order. */
  readonly certificate: Uint8Array | undefined;
  header(name: string): string | undefined;
  /** All headers that begin so, in lower case, with all their values. */
  headersFrom(prefix: string): Iterable<readonly [name: string, value: string]>;
}

/** Who a client's certificate says it is, or whom the aggregation layer asks for. */
export function certifiedUser(asker: Asker, trust: ClientTrust): User | undefined {
  if (asker.certificate === undefined) return undefined;
  const certificate = new X509Certificate(asker.certificate);
  const subject = certificate.toLegacyObject().subject as Readonly<
    Record<string, string | readonly string[] | undefined>
  >;
  const [name] = textsIn(subject, "CN");
  if (name === undefined) return undefined;
  if (isIssuedBy(certificate, trust.proxyCa)) {
    if (trust.proxyNames.length > 0 && !trust.proxyNames.includes(name)) return undefined;
    return proxiedUser(asker, trust);
  }
  if (!isIssuedBy(certificate, trust.clientCa)) return undefined;
  return { name, uid: "", groups: [...textsIn(subject, "O"), authenticated], extra: {} };
}

const authenticated = "system:authenticated";

function textsIn(
  subject: Readonly<Record<string, string | readonly string[] | undefined>>,
  key: string,
): readonly string[] {
  const value = subject[key];
  return value === undefined ? [] : typeof value === "string" ? [value] : value;
}

/** Whether one of these authorities has signed it itself, as those of Kubernetes do. */
function isIssuedBy(certificate: X509Certificate, bundle: string): boolean {
  return certificatesIn(bundle).some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey));
}

/** The last bundles read; there are two. */
const read = new Map<string, readonly X509Certificate[]>();
const maxRead = 8;

function certificatesIn(bundle: string): readonly X509Certificate[] {
  const there = read.get(bundle);
  if (there !== undefined) return there;
  const blocks = bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const certificates = blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
  if (read.size >= maxRead) read.clear();
  read.set(bundle, certificates);
  return certificates;
}

function proxiedUser(asker: Asker, trust: ClientTrust): User | undefined {
  const first = (names: readonly string[]): string | undefined =>
    names.map((header) => asker.header(header.toLowerCase())).find((value) => value !== undefined && value !== "");
  const name = first(trust.userHeaders);
  if (name === undefined) return undefined;
  const groups = trust.groupHeaders.flatMap((header) =>
    [...asker.headersFrom(header.toLowerCase())]
      .filter(([is]) => is === header.toLowerCase())
      .map(([, value]) => value),
  );
  const extra: Record<string, string[]> = {};
  for (const prefix of trust.extraPrefixes)
    for (const [header, value] of asker.headersFrom(prefix.toLowerCase())) {
      const key = unescaped(header.slice(prefix.length));
      if (key !== undefined) extra[key] = [...(Object.hasOwn(extra, key) ? (extra[key] ?? []) : []), value];
    }
  return { name, uid: "", groups: withAuthenticated(name, groups), extra };
}

/** Whoever is known belongs to this group, as with servers of Kubernetes: the aggregation layer itself asks without any. */
function withAuthenticated(name: string, groups: readonly string[]): readonly string[] {
  const isStranger = name === "system:anonymous" || groups.includes("system:unauthenticated");
  return isStranger || groups.includes(authenticated) ? groups : [...groups, authenticated];
}

/** Keys of extra fields have slashes, which headers escape. */
function unescaped(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
