import { readFile } from "node:fs/promises";
import {
  anonymous,
  bearer,
  type ClusterAccess,
  type Credentials,
  serviceAccountAccess,
  type TlsMaterial,
  tokenFile,
} from "./access.ts";
import { type ExecCluster, ExecCredentials } from "./exec-credential.ts";
import { type Entry, type Kubeconfig, pathFrom, readKubeconfig, wrong } from "./kubeconfig.ts";
import { textIn } from "./resource.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface KubeconfigOptions {
  readonly env: Environment;
  /** Absent: as KUBECONFIG says, or `~/.kube/config`. */
  readonly file?: string;
  /** Absent: the current one. */
  readonly context?: string;
}

/**
 * The access that kubectl would have.
 * @throws {CniError} code 7, with no secret in it
 */
export async function kubeconfigAccess({ env, file, context }: KubeconfigOptions): Promise<ClusterAccess> {
  return accessOf(await readKubeconfig(env, file), env, context);
}

/**
 * The access of a person's command, as kubectl looks for it: a pod's own account where no kubeconfig is named.
 * @throws {CniError} code 7
 */
export async function operatorAccess(
  { file, context }: { readonly file: string | undefined; readonly context: string | undefined },
  env: Environment,
): Promise<ClusterAccess> {
  const isNamed = file !== undefined || context !== undefined || (env["KUBECONFIG"] ?? "") !== "";
  if (!isNamed && env["KUBERNETES_SERVICE_HOST"] !== undefined) return serviceAccountAccess({}, env, "--kubeconfig");
  const given = { ...(file === undefined ? {} : { file }), ...(context === undefined ? {} : { context }) };
  return await kubeconfigAccess({ env, ...given });
}

/** @throws {CniError} code 7 */
export function accessOf(config: Kubeconfig, env: Environment, named?: string): ClusterAccess {
  const name = named ?? config.currentContext;
  if (name === undefined) throw wrong(`${config.source} has no "current-context", wanted one, or --context`);
  const context = entryOf(config.contexts, "context", name, config);
  const clusterName = textIn(context.value, "cluster") ?? "";
  const cluster = entryOf(config.clusters, "cluster", clusterName, config);
  const userName = textIn(context.value, "user");
  const user = userName === undefined ? undefined : entryOf(config.users, "user", userName, config);
  const server = textIn(cluster.value, "server");
  if (server === undefined || !/^https?:\/\//.test(server) || !URL.canParse(server))
    throw wrong(`cluster "${clusterName}" has no "server" that is a URL, wanted https://HOST:PORT`);
  const proxy = textIn(cluster.value, "proxy-url");
  const namespace = textIn(context.value, "namespace");
  const credentials = user === undefined ? anonymous : credentialsOf(user, userName ?? "", cluster, server, env);
  return {
    server,
    tls: () => tlsOf(cluster, user),
    credentials,
    ...(proxy === undefined ? {} : { proxy }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function entryOf(entries: ReadonlyMap<string, Entry>, what: string, name: string, { source }: Kubeconfig): Entry {
  const entry = entries.get(name);
  if (entry !== undefined) return entry;
  const known = [...entries.keys()].map((key) => `"${key}"`).join(", ") || "none";
  throw wrong(`${source} has no ${what} "${name}", wanted one of those that it has: ${known}`);
}

async function tlsOf(cluster: Entry, user: Entry | undefined): Promise<TlsMaterial> {
  const [ca, cert, key] = await Promise.all([
    pem(cluster, "certificate-authority"),
    user === undefined ? undefined : pem(user, "client-certificate"),
    user === undefined ? undefined : pem(user, "client-key"),
  ]);
  const serverName = textIn(cluster.value, "tls-server-name");
  const insecure = cluster.value["insecure-skip-tls-verify"] === true;
  if (insecure && ca !== undefined)
    throw wrong('a cluster has "certificate-authority" and "insecure-skip-tls-verify", wanted one of them');
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(serverName === undefined ? {} : { serverName }),
    ...(insecure ? { insecure } : {}),
  };
}

/** Inline in base64, which takes precedence, or in a file, which is read each time because it may be rotated. */
async function pem({ value, folder }: Entry, field: string): Promise<string | undefined> {
  const inline = textIn(value, `${field}-data`);
  if (inline !== undefined) return Buffer.from(inline, "base64").toString("utf8");
  const path = textIn(value, field);
  if (path === undefined) return undefined;
  const file = pathFrom(folder, path);
  try {
    return await readFile(file, "utf8");
  } catch (caught) {
    throw wrong(`"${field}" is "${file}", which cannot be read (${(caught as { readonly code?: unknown }).code})`);
  }
}

function credentialsOf(user: Entry, name: string, cluster: Entry, server: string, env: Environment): Credentials {
  const { value, folder } = user;
  if (value["auth-provider"] !== undefined)
    throw wrong(`user "${name}" has an "auth-provider", which Kubernetes has given up, wanted "exec" with a plugin`);
  if (value["exec"] !== undefined)
    return new ExecCredentials(value["exec"], { name, folder, env, cluster: execCluster(cluster, server) });
  const path = textIn(value, "tokenFile");
  if (path !== undefined) return tokenFile(pathFrom(folder, path));
  const token = textIn(value, "token");
  if (token !== undefined) return constant(bearer(token, `user "${name}"`));
  const login = textIn(value, "username");
  if (login === undefined) return anonymous;
  return constant(`Basic ${Buffer.from(`${login}:${textIn(value, "password") ?? ""}`).toString("base64")}`);
}

const constant = (authorization: string): Credentials => ({ ...anonymous, authorization: async () => authorization });

/** The cluster's data for a plugin that asks for it (`provideClusterInfo`). */
function execCluster({ value }: Entry, server: string): ExecCluster {
  const told = ["tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"] as const;
  return {
    server,
    ...Object.fromEntries(told.filter((key) => value[key] !== undefined).map((key) => [key, value[key]])),
  };
}
