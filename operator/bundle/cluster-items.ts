import { isNodeName } from "../../shared/documents/mod.ts";
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  bytesOf,
  listIn,
  mapIn,
  mapsIn,
  Patience,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { Item } from "./collect.ts";
import { limits } from "./limits.ts";

/** What the API server knows of Pipette itself, which needs no agent that is alive. */

/** Read before it is cut to its end; kubelets end a file of a log far below. */
const maxLogBytes = 4 * limits.itemBytes;
/** Events of a namespace's pod: the API server keeps them for an hour, and counts those alike. */
const maxEvents = 200;
const ours = encodeURIComponent("app.kubernetes.io/name=pipette");

interface Api {
  readonly client: ApiClient;
  /** In which Pipette is. */
  readonly namespace: string;
}

/** Workloads, configuration and the nodes' own words of themselves. What is not installed is not there. */
export function apiItems(api: Api): readonly Item[] {
  const within = `namespaces/${encodeURIComponent(api.namespace)}`;
  const list = (name: string, path: string, clean: (object: ApiObject) => object = withoutManagers): Item => ({
    path: `cluster/${name}.json`,
    work: (signal) => listed(api.client, { path, action: `list ${name}` }, clean, signal),
  });
  return [
    list("daemonsets", `/apis/apps/v1/${within}/daemonsets?limit=100&labelSelector=${ours}`, workload),
    list("deployments", `/apis/apps/v1/${within}/deployments?limit=100&labelSelector=${ours}`, workload),
    ...["pipette-agent", "pipette-agent-windows"].map((name) => ({
      path: `cluster/${name}-configuration.json`,
      work: async (signal: AbortSignal) => {
        const ask = { path: `/api/v1/${within}/configmaps/${name}`, action: `get ConfigMap "${name}"` };
        const found = await ifThere(api.client.get({ ...ask, signal }));
        return found === undefined ? undefined : { data: found["data"] };
      },
    })),
    list("pipettenodes", "/apis/pipette.io/v1alpha1/pipettenodes?limit=5000"),
    list("pipettecontrollers", "/apis/pipette.io/v1alpha1/pipettecontrollers?limit=100"),
  ];
}

/** Of one pod of Pipette's: its state, what happened to it, and the ends of its logs, also of what ran there before. */
export function podItems(api: Api, pod: string, at: string, node?: string): readonly Item[] {
  const path = `/api/v1/namespaces/${encodeURIComponent(api.namespace)}/pods/${encodeURIComponent(pod)}`;
  const selector = encodeURIComponent(`involvedObject.kind=Pod,involvedObject.name=${pod}`);
  const events = `/api/v1/namespaces/${encodeURIComponent(api.namespace)}/events?limit=${maxEvents}&fieldSelector=${selector}`;
  const get = async (what: string, from: string, signal: AbortSignal): Promise<ApiObject> =>
    await api.client.get({ path: from, action: `get ${what} of pod "${api.namespace}/${pod}"`, signal });
  const log =
    (isPrevious: boolean): Item["work"] =>
    async (signal) => {
      const containers = containersOf(await get("the state", path, signal)).filter(
        (one) => !isPrevious || one.hasEnded,
      );
      if (containers.length === 0) return undefined;
      const texts = await Promise.allSettled(
        containers.map(({ name }) => logOf(api.client, path, name, isPrevious, signal)),
      );
      const [first] = texts;
      // What one container's log is not read for is said in its place: those of the others are worth having.
      if (first?.status === "rejected" && texts.every(({ status }) => status === "rejected")) throw first.reason;
      const told = texts.map((one) => (one.status === "fulfilled" ? one.value : `[${reasonOf(one.reason)}]`));
      return told.map((text, i) => `==> ${containers[i]?.name ?? ""} <==\n${text}`).join("\n");
    };
  const of = { ...(node === undefined ? {} : { node }) };
  return [
    { ...of, path: `${at}.json`, work: async (signal) => podWithoutSecrets(await get("the state", path, signal)) },
    { ...of, path: `${at}-events.json`, work: (signal) => get("the events", events, signal) },
    { ...of, path: `${at}.log`, work: log(false), keepsEnd: true },
    { ...of, path: `${at}-previous.log`, work: log(true), keepsEnd: true },
  ];
}

/** The containers that have run, and whether one has ended before. Their names are part of a path. */
function containersOf(pod: ApiObject): readonly { readonly name: string; readonly hasEnded: boolean }[] {
  const status = mapIn(pod, "status");
  return ["initContainerStatuses", "containerStatuses"]
    .flatMap((key) => mapsIn(status, key))
    .flatMap((one) => {
      const name = textIn(one, "name");
      const hasRun = mapIn(mapIn(one, "state"), "waiting")["reason"] === undefined || one["restartCount"] !== 0;
      if (name === undefined || !isNodeName(name) || !hasRun) return [];
      return [{ name, hasEnded: textIn(mapIn(mapIn(one, "lastState"), "terminated"), "containerID") !== undefined }];
    });
}

/** The log's end. @throws {ApiError | Error} */
async function logOf(
  client: ApiClient,
  pod: string,
  container: string,
  isPrevious: boolean,
  signal: AbortSignal,
): Promise<string> {
  const query = new URLSearchParams({
    ...{ container, timestamps: "true", tailLines: String(limits.logLines), limitBytes: String(maxLogBytes) },
    ...(isPrevious ? { previous: "true" } : {}),
  });
  const ask = { path: `${pod}/log?${query}`, action: `get the log of container "${container}"`, accept: "*/*", signal };
  using patience = new Patience();
  const answer = await client.stream(ask, patience, limits.itemMs);
  patience.last(limits.itemMs, `did not end its log within ${limits.itemMs} ms`);
  // A kubelet keeps to the bound; whoever answers in its place may not.
  return new TextDecoder().decode(await bytesOf(answer, maxLogBytes + 1024));
}

async function listed(
  client: ApiClient,
  ask: { readonly path: string; readonly action: string },
  clean: (object: ApiObject) => object,
  signal: AbortSignal,
): Promise<object | undefined> {
  const list = await ifThere(client.get({ ...ask, signal }));
  return list === undefined ? undefined : { items: listIn(list, "items").map((one) => clean(one as ApiObject)) };
}

/** @returns `undefined` for a kind that the API server does not have, or an object that is not there */
async function ifThere(asking: Promise<ApiObject>): Promise<ApiObject | undefined> {
  try {
    return await asking;
  } catch (caught) {
    if (caught instanceof ApiError && caught.status === 404) return undefined;
    throw caught;
  }
}

/** What tools note may hold anything. */
function withoutManagers(object: ApiObject): ApiObject {
  const metadata = mapIn(object, "metadata");
  const kept = ["name", "namespace", "uid", "creationTimestamp", "generation", "labels"];
  return { ...object, metadata: Object.fromEntries(kept.map((key) => [key, metadata[key]])) };
}

function workload(object: ApiObject): object {
  const spec = mapIn(object, "spec");
  const template = mapIn(mapIn(spec, "template"), "spec");
  return {
    ...withoutManagers(object),
    spec: { ...spec, template: { spec: podSpec(template) } },
  };
}

/** Without the environment and what tools have noted: both may hold anything. */
function podWithoutSecrets(pod: ApiObject): object {
  return { metadata: withoutManagers(pod)["metadata"], spec: podSpec(mapIn(pod, "spec")), status: pod["status"] };
}

function podSpec(spec: ApiObject): object {
  const containers = (key: string): readonly object[] =>
    mapsIn(spec, key).map(({ env: _env, envFrom: _from, ...rest }) => rest);
  return {
    nodeName: textIn(spec, "nodeName"),
    initContainers: containers("initContainers"),
    containers: containers("containers"),
  };
}
