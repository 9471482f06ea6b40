import { defaulted, type Infer, object, optional } from "../../shared/schema/mod.ts";
import { namespaceName, path, url } from "./values.ts";

/** `clusterState` of `agent.yaml`. */
export const clusterStateSchema = object({
  namespace: defaulted(
    namespaceName,
    "kube-system",
    "where the node's Lease lies, by which others see that the agent is alive",
  ),
  server: optional(url('"https://HOST:PORT"', ["https:", "http:"]), "the API server", "what a pod finds"),
  token: optional(path, "a file with the token; it has to be of a pod on this node", "as `server`"),
  ca: optional(path, "the authorities that the server's certificate is checked with (PEM)", "as `server`"),
});

export type ClusterStateConfig = Infer<typeof clusterStateSchema>;
