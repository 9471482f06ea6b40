import { type ApiClient, ApiError, mapIn, textIn } from "../../shared/kubernetes/mod.ts";

/** Where clients look for the authority: agents in ConfigMaps, the aggregation layer in APIServices. */
export interface PublishedIn {
  readonly namespace: string;
  readonly configMaps: readonly string[];
  /** Those that are not there are left out: who does not want the API in kubectl does not register it. */
  readonly apiServices: readonly string[];
}

const caKey = "ca.crt";

/** Writes what differs, since somebody may have changed or removed it. @throws {ApiError} */
export async function publish(
  client: ApiClient,
  { namespace, configMaps, apiServices }: PublishedIn,
  ca: string,
): Promise<void> {
  for (const name of configMaps) await publishConfigMap(client, namespace, name, ca);
  for (const name of apiServices) await publishApiService(client, name, new TextEncoder().encode(ca).toBase64());
}

/** The same in one ConfigMap. @throws {ApiError} */
export async function publishConfigMap(client: ApiClient, namespace: string, name: string, ca: string): Promise<void> {
  const all = `/api/v1/namespaces/${namespace}/configmaps`;
  const what = `configmap "${name}" in namespace "${namespace}"`;
  const there = await unlessMissing(client.get({ path: `${all}/${name}`, action: `read ${what}` }));
  const data = { [caKey]: ca };
  if (there === undefined) {
    const object = { kind: "ConfigMap", apiVersion: "v1", metadata: { namespace, name }, data };
    await unlessThere(client.create({ path: all, action: `create ${what}` }, object));
  } else if (textIn(mapIn(there, "data"), caKey) !== ca)
    await client.patch({ path: `${all}/${name}`, action: `change ${what}` }, { data });
}

async function publishApiService(client: ApiClient, name: string, caBundle: string): Promise<void> {
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${name}`;
  const there = await unlessMissing(client.get({ path, action: `read apiservice "${name}"` }));
  if (there === undefined || textIn(mapIn(there, "spec"), "caBundle") === caBundle) return;
  await client.patch({ path, action: `change apiservice "${name}"` }, { spec: { caBundle } });
}

const unlessMissing = <T>(asked: Promise<T>): Promise<T | undefined> => unless(404, asked);
/** Another replica was first. */
const unlessThere = <T>(asked: Promise<T>): Promise<T | undefined> => unless(409, asked);

async function unless<T>(status: number, asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (caught) {
    if (caught instanceof ApiError && caught.status === status) return undefined;
    throw caught;
  }
}
