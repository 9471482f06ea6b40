import { nodeKinds } from "../../shared/documents/mod.ts";
import { type ApiClient, listIn, mapIn, textIn } from "../../shared/kubernetes/mod.ts";
import type { DocumentSource } from "../document-source.ts";
import type { Item } from "./collect.ts";
import { limits } from "./limits.ts";

/** Every document of a node, as its agent makes it. */
export function documentItems(source: DocumentSource, node: string): readonly Item[] {
  return nodeKinds.map((kind) => ({
    path: `nodes/${node}/${kind}.json`,
    withinMs: kind === "findings" ? limits.findingsMs : limits.itemMs,
    work: async (signal) => {
      const answer = await source.get(node, { kind }, signal);
      if (answer.t === "document") return answer.document;
      throw new Error("it says that nothing has changed, and nobody asked that");
    },
  }));
}

/** The cluster as a whole. */
export const clusterItems = (source: DocumentSource): readonly Item[] => [
  { path: "cluster/nodes.json", work: (signal) => source.cluster(signal) },
];

/** Of an agent's pod: its state, and what happened to it; not its log, which viewers may not read. Needs no agent. */
export function agentPodItems(client: ApiClient, node: string, pod: string): readonly Item[] {
  const [namespace = "", name = ""] = pod.split("/", 2);
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const get =
    (what: string, at: string) =>
    (signal: AbortSignal): Promise<object> =>
      client.get({ path: at, action: `get ${what} of pod "${pod}"`, signal });
  const selector = encodeURIComponent(`involvedObject.kind=Pod,involvedObject.name=${name}`);
  return [
    {
      path: `nodes/${node}/agent-pod.json`,
      work: async (signal) => podWithoutSecrets(await get("the state", path)(signal)),
    },
    {
      path: `nodes/${node}/agent-pod-events.json`,
      work: get(
        "the events",
        `/api/v1/namespaces/${encodeURIComponent(namespace)}/events?limit=200&fieldSelector=${selector}`,
      ),
    },
  ];
}

/** Without the environment and what tools have noted: both may hold anything. */
function podWithoutSecrets(object: object): object {
  const pod = object as Readonly<Record<string, unknown>>;
  const containers = (key: string): readonly object[] =>
    listIn(mapIn(pod, "spec") ?? {}, key).map((one) => {
      const { env: _env, envFrom: _from, ...rest } = one as Readonly<Record<string, unknown>>;
      return rest;
    });
  const metadata = mapIn(pod, "metadata") ?? {};
  const kept = ["name", "namespace", "uid", "creationTimestamp", "labels"].map((key) => [key, metadata[key]]);
  return {
    metadata: Object.fromEntries(kept),
    spec: {
      nodeName: textIn(mapIn(pod, "spec") ?? {}, "nodeName"),
      initContainers: containers("initContainers"),
      containers: containers("containers"),
    },
    status: pod["status"],
  };
}
