import { apiItems, podItems } from "../../../operator/bundle/cluster-items.ts";
import { listAgentPods, listControllerPods } from "../../../operator/cluster/agent-pods.ts";
import { ClusterSource } from "../../../operator/cluster/cluster-source.ts";
import { asTable } from "../../../operator/output.ts";
import { nodesTable } from "../../../operator/tables/tables.ts";
import { podEvents, podState } from "../../../operator/why/pod-object.ts";
import { ApiClient, ApiError, serviceAccountAccess } from "../../../shared/kubernetes/mod.ts";
import type { ApiRequest, Transport } from "../../../shared/kubernetes/transport.ts";
import type { Opened, Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { jsonOf, requireCniError, requireHarmless } from "./words.ts";

const words = [
  ...["pods", "nodes", "token", "answer", "log", "state", "events", "items", "metadata", "resourceVersion", "continue"],
  ...[
    "spec",
    "status",
    "nodeName",
    "containers",
    "ports",
    "containerPort",
    "conditions",
    "Ready",
    "podIPs",
    "hostNetwork",
  ],
  ...[
    "containerStatuses",
    "lastState",
    "terminated",
    "containerID",
    "restartCount",
    "involvedObject",
    "reason",
    "count",
  ],
  ...["FailedCreatePodSandBox", "Warning", "lastTimestamp", "revision", "atMs", "document", "unchanged", "level"],
];

/** Which part of an input answers a request: one value for each, so that each is met by itself. */
function partOf({ method, path }: ApiRequest): string {
  if (path.includes("/proxy/")) return "answer";
  if (path.includes("/log?")) return "log";
  if (method === "POST") return "token";
  if (path.includes("/events")) return "events";
  if (/\/pods\/[^/?]+$/.test(path)) return "state";
  return path.includes("/nodes") ? "nodes" : path.includes("/pods") ? "pods" : "others";
}

/** A server whose answers are an input. Its lists end, since pages of an endless one are all the same. */
function server(): { readonly transport: Transport; parts: Readonly<Record<string, unknown>> } {
  let asked = 0;
  const held = {
    parts: {} as Readonly<Record<string, unknown>>,
    transport: {
      request: async (request: ApiRequest) => {
        const value = ++asked % 8 === 0 ? { code: 404 } : held.parts[partOf(request)];
        const text = typeof value === "string" ? value : JSON.stringify(value ?? {});
        const bytes = new TextEncoder().encode(text);
        return {
          status: asked % 8 === 0 ? 404 : 200,
          header: () => undefined,
          body: (async function* () {
            yield bytes;
          })(),
        };
      },
      [Symbol.asyncDispose]: async () => undefined,
    },
  };
  return held;
}

/** Its errors are for people: ours, or plain ones that a command tells. */
async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (caught) {
    if (caught instanceof ApiError || (caught instanceof Error && caught.constructor === Error)) {
      if (!(caught instanceof ApiError)) requireHarmless(caught.message, "an error");
      return undefined;
    }
    requireCniError(caught);
    return undefined;
  }
}

function openCluster(): Opened {
  const held = server();
  const access = serviceAccountAccess({ server: "http://127.0.0.1:1" }, {}, "server");
  const client = new ApiClient(access, { transport: held.transport });
  const api = { client, namespace: "kube-system" };
  return {
    run: async (input) => {
      const value = jsonOf(input);
      held.parts = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
      const { signal } = new AbortController();
      const source = new ClusterSource(client, "kube-system");
      const cluster = await attempt(() => source.cluster(signal));
      if (cluster !== undefined)
        asTable([{ node: "", atMs: 0, document: cluster }], nodesTable, { wide: true, ofSeveral: false });
      const nodes = (await attempt(() => source.nodes(signal))) ?? [];
      for (const node of nodes.slice(0, 2)) {
        await attempt(() => source.get(node, { kind: "pods" }, signal));
        await attempt(() => source.logLevel(node, undefined, signal));
      }
      await attempt(() => listAgentPods(client, "kube-system", undefined, signal));
      await attempt(() => listControllerPods(client, "kube-system", signal));
      const pod = { namespace: "shop", name: "cart" };
      await attempt(() => podState(client, pod, signal));
      await attempt(() => podEvents(client, pod, signal));
      for (const { work } of [...apiItems(api), ...podItems(api, "agent", "nodes/a/agent-pod")])
        await attempt(() => work(signal));
    },
    close: () => client[Symbol.asyncDispose](),
  };
}

export const operatorCluster: Target = {
  name: "operator-cluster",
  what: "answers of an API server, and of agents behind it, to the operator's tool",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 16 * 1024,
  open: openCluster,
};
