import {
  type ApiClient,
  type ApiObject,
  listPages,
  mapIn,
  mapsIn,
  type Resource,
  textIn,
} from "../../shared/kubernetes/mod.ts";

/** An agent's pod, as the API server has it. */
export interface AgentPod {
  readonly name: string;
  readonly node: string;
  readonly isReady: boolean;
  /** Where it answers operators; absent: its configuration has no port for that. */
  readonly port: number | undefined;
}

/** What the chart calls the agents' pods, of either system, and those of its controller. */
const labels = {
  agents: "app.kubernetes.io/name=pipette,app.kubernetes.io/component in (agent,agent-windows)",
  controllers: "app.kubernetes.io/name=pipette,app.kubernetes.io/component=controller",
} as const;
/** The port of the container, by the chart's name for it. */
const portName = "https";

const agentPods: Resource<AgentPod> = { version: "v1", plural: "pods", project: readPod };

function readPod(pod: ApiObject): AgentPod | undefined {
  const spec = mapIn(pod, "spec");
  const [name, node] = [textIn(mapIn(pod, "metadata"), "name"), textIn(spec, "nodeName")];
  if (name === undefined || node === undefined) return undefined;
  const ports = mapsIn(spec, "containers").flatMap((container) => mapsIn(container, "ports"));
  const port = ports.find((one) => textIn(one, "name") === portName)?.["containerPort"];
  const conditions = mapsIn(mapIn(pod, "status"), "conditions");
  const isReady = conditions.some((one) => textIn(one, "type") === "Ready" && textIn(one, "status") === "True");
  return { name, node, isReady, port: typeof port === "number" ? port : undefined };
}

/**
 * The agents' pods of this namespace, of one node or of all, by node: a ready one first, since an old one may stand
 * beside it for a while. Only of the namespace in which Pipette is: elsewhere anybody may give a pod such labels.
 * @throws {ApiError}
 */
export async function listAgentPods(
  client: ApiClient,
  namespace: string,
  node: string | undefined,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, AgentPod>> {
  const selection = {
    namespace,
    labels: labels.agents,
    ...(node === undefined ? {} : { fields: `spec.nodeName=${node}` }),
  };
  const found = new Map<string, AgentPod>();
  for await (const { items } of listPages(client, agentPods, selection, signal))
    for (const item of items) {
      const pod = agentPods.project(item);
      if (pod !== undefined && found.get(pod.node)?.isReady !== true) found.set(pod.node, pod);
    }
  return found;
}

/** Names of the controller's pods. @throws {ApiError} */
export async function listControllerPods(
  client: ApiClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { items } of listPages(client, agentPods, { namespace, labels: labels.controllers }, signal))
    found.push(...items.flatMap((item) => agentPods.project(item)?.name ?? []));
  return found;
}
