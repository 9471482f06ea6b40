import type { Infer } from "../schema/mod.ts";
import { nodesSchema } from "./cluster-documents.ts";
import { addressesSchema, historySchema, leasesSchema, podsSchema } from "./pod-documents.ts";
import { callsSchema, findingsSchema, nodeSchema, peersSchema } from "./state-documents.ts";
import { flowsSchema, policiesSchema, servicesSchema } from "./traffic-documents.ts";

/** Of each kind of document: its schema, and its title for those who read that. */
export const nodeDocuments = {
  node: { schema: nodeSchema, title: "a node, as its agent sees itself" },
  pods: { schema: podsSchema, title: "the attachments of pods on a node" },
  leases: { schema: leasesSchema, title: "the leases of a node's allocator" },
  addresses: { schema: addressesSchema, title: "the addresses of a node's networks" },
  history: { schema: historySchema, title: "who had the addresses of a node, and when" },
  services: { schema: servicesSchema, title: "the services that a node balances" },
  policies: { schema: policiesSchema, title: "the pods of a node that network policies isolate" },
  flows: { schema: flowsSchema, title: "the flows and rules of a node's data path" },
  findings: { schema: findingsSchema, title: "what disagrees on a node" },
  calls: { schema: callsSchema, title: "the last calls of runtimes on a node" },
  peers: { schema: peersSchema, title: "the nodes that a node knows" },
} as const;

export type NodeKind = keyof typeof nodeDocuments;
export const nodeKinds = Object.keys(nodeDocuments) as readonly NodeKind[];
export const isNodeKind = (text: string): text is NodeKind => Object.hasOwn(nodeDocuments, text);

export type NodeDocumentOf<K extends NodeKind> = Infer<(typeof nodeDocuments)[K]["schema"]>;

/** Documents of the cluster as a whole. */
export const clusterDocuments = {
  nodes: { schema: nodesSchema, title: "the nodes of a cluster" },
} as const;
