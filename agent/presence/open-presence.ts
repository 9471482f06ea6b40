import { readNodeDocument } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { ApiClient, KubernetesEvents, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import type { ClusterStateConfig } from "../config/cluster-state-config.ts";
import { NodePresence } from "./node-presence.ts";

/** A document as the agent makes it; `undefined` where it has not changed, which nobody asks. */
export type ReadDocument = (kind: "node" | "addresses") => Promise<{ readonly json: Uint8Array } | undefined>;

/** @throws {CniError} 7 where nothing says where the API server is */
export function openNodePresence(
  { namespace, ...place }: ClusterStateConfig,
  node: string,
  {
    document,
    logger,
    env,
  }: {
    readonly document: ReadDocument;
    readonly logger: Logger;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): AsyncDisposable {
  const access = serviceAccountAccess(place, env, "clusterState.server");
  const client = new ApiClient(access, { env });
  const events = new KubernetesEvents({ node, connect: () => new ApiClient(access, { env }), logger });
  // The kubelet too names the Node by its name where others have an identifier, and "kubectl describe" looks for that.
  const of = { namespace: "default", name: node, uid: node };
  const read = async <K extends "node" | "addresses">(kind: K) =>
    readNodeDocument(kind, undefined, (await document(kind))?.json ?? none(kind), "this agent");
  const presence = new NodePresence({
    ...{ node, namespace, client, logger },
    tell: (reason, message) => events.tell({ kind: "Node", of, reason, message }),
    look: async () => ({ node: await read("node"), addresses: await read("addresses") }),
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await presence[Symbol.asyncDispose]();
      await events[Symbol.asyncDispose]();
      await client[Symbol.asyncDispose]();
    },
  };
}

const none = (kind: string): never => {
  throw new CniError(CniCode.internal, `Cannot read this agent's ${kind}: there is none`);
};
