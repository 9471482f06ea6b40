/**
 * Documents: what people and programs see of a node and of the cluster, in a versioned shape, whichever way it comes.
 * An agent makes them; the tool, its page and bundles read them, and trust none of them.
 */
export {
  type BundleIndex,
  bundleIndexSchema,
  type DocumentNode,
  maxBundleFiles,
  maxIndexBytes,
  type NodesDocument,
} from "./cluster-documents.ts";
export { clusterDocuments, isNodeKind, type NodeDocumentOf, type NodeKind, nodeDocuments, nodeKinds } from "./kinds.ts";
export { documentVersion, isNodeName, maxRows, maxTextChars, maxValues } from "./parts.ts";
export {
  type AddressesDocument,
  type CellLetter,
  cellLetters,
  type DocumentLease,
  type DocumentPeriod,
  type DocumentPod,
  type DocumentPool,
  type HistoryDocument,
  type LeasesDocument,
  type PodsDocument,
} from "./pod-documents.ts";
export { maxDocumentBytes, readNodeDocument, readNodesDocument, readOne } from "./read-document.ts";
export {
  type CallsDocument,
  type DocumentCall,
  type DocumentFinding,
  type DocumentPeer,
  type DocumentProbe,
  type FindingsDocument,
  type NodeDocument,
  nodeStates,
  type PeersDocument,
  type ProbeState,
  probeStates,
} from "./state-documents.ts";
export type {
  DocumentFlow,
  DocumentPolicedPod,
  DocumentService,
  DocumentTable,
  FlowsDocument,
  PoliciesDocument,
  ServicesDocument,
} from "./traffic-documents.ts";
