import type { KubernetesEvents } from "../shared/kubernetes/mod.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { nameOf } from "./config/nodes-config.ts";
import type { DataPath } from "./datapath/datapath.ts";

/** Has Events tell of the Node: they stand in the namespace "default", with its name as uid, as the kubelet writes them. */
export function tellOfNode(
  dataPath: DataPath,
  { nodes }: Pick<AgentConfig, "nodes">,
  events: Pick<KubernetesEvents, "tell"> | undefined,
): void {
  const name = nodes?.name ?? nameOf({});
  const of = { namespace: "default", name, uid: name };
  dataPath.tellTroubles?.((message) => events?.tell({ kind: "Node", of, reason: "PodsNotReached", message }));
}
