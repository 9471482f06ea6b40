import {
  apiItems,
  ClusterSource,
  clusterItems,
  type DocumentSource,
  documentItems,
  type Item,
  listAgentPods,
  listControllerPods,
  podItems,
} from "../../../operator/mod.ts";
import { isNodeName, type NodesDocument } from "../../../shared/documents/mod.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { Failure, Wanted } from "./bundle-command.ts";

/** For the nodes of a cluster, or its agents' pods, to be listed. */
const listMs = 20_000;

/**
 * Of nodes that are asked from elsewhere: their documents, and by an API server what it knows of Pipette itself, which
 * is there also while every agent is dead.
 * @param named these nodes; empty: all
 */
export async function wantedOfCluster(source: DocumentSource, named: readonly string[]): Promise<Wanted> {
  const failures: Failure[] = [];
  const api = source instanceof ClusterSource ? source.api : undefined;
  if (api === undefined) {
    const served = named.length > 0 ? undefined : await attempt("nodes", failures, (signal) => source.nodes(signal));
    const nodes = [...new Set(served ?? named)];
    return {
      nodes,
      failures,
      items: [...clusterItems(source), ...nodes.flatMap((node) => documentItems(source, node))],
    };
  }
  const { client, namespace } = api;
  const [pods, cluster, controllers] = await Promise.all([
    attempt("agents", failures, (signal) => listAgentPods(client, namespace, undefined, signal)),
    named.length > 0 ? undefined : attempt("nodes", failures, (signal) => source.cluster(signal)),
    attempt("controllers", failures, (signal) => listControllerPods(client, namespace, signal)),
  ]);
  // The names are folders of the bundle.
  const served = [...(pods?.keys() ?? [])].filter(isNodeName).toSorted();
  const nodes = named.length > 0 ? [...new Set(named)] : served;
  const ofNode = (node: string): readonly Item[] => {
    const pod = pods?.get(node)?.name;
    return [
      ...documentItems(source, node),
      ...(pod === undefined ? [] : podItems(api, pod, `nodes/${node}/agent-pod`, node)),
    ];
  };
  return {
    nodes,
    failures: [...failures, ...withoutAgent(cluster, pods)],
    items: [
      ...clusterItems(source),
      ...apiItems(api),
      ...(controllers ?? []).flatMap((pod) => podItems(api, pod, `cluster/controllers/${pod}`)),
      ...nodes.flatMap(ofNode),
    ],
  };
}

/** Nodes that only they themselves can tell of. */
function withoutAgent(
  cluster: NodesDocument | undefined,
  pods: ReadonlyMap<string, unknown> | undefined,
): readonly Failure[] {
  if (cluster === undefined || pods === undefined) return [];
  return cluster.nodes
    .filter(({ name }) => !pods.has(name))
    .map(({ name }) => ({
      item: `nodes/${name}`,
      reason: 'no pod of an agent is on it, wanted "pipette bundle" on the node itself',
    }));
}

async function attempt<T>(
  item: string,
  failures: Failure[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work(AbortSignal.timeout(listMs));
  } catch (caught) {
    failures.push({ item, reason: reasonOf(caught) });
    return undefined;
  }
}
