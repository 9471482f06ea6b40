import { boolean, type Infer, integer, list, object, oneOf, optional, required } from "../schema/mod.ts";
import { count, documentVersion, nodeName, omitted, rows, sentence, values } from "./parts.ts";

/** What is known of the cluster as a whole, without asking a single agent. */
export const nodesSchema = object({
  kind: required(oneOf(["nodes"])),
  version: required(integer(documentVersion, documentVersion), "of the document's shape"),
  source: required(sentence, "who says so, in words: an API server, a node's registry, a bundle"),
  nodes: required(
    rows(
      object({
        name: required(nodeName),
        ready: optional(boolean, "as the API server says; absent where nobody does"),
        system: optional(sentence, "`linux` or `windows`"),
        addresses: required(values(sentence), "where the node is reached"),
        subnets: required(values(sentence), "of its pods"),
        agentPod: optional(sentence, "namespace/name of the agent's pod"),
        agentReady: optional(boolean),
        state: optional(sentence, "what the registry of nodes says"),
      }),
    ),
    "by name",
  ),
  omitted,
});

export type NodesDocument = Infer<typeof nodesSchema>;
export type DocumentNode = NodesDocument["nodes"][number];

/** Files of a bundle: thousands of nodes with some dozens each. */
export const maxBundleFiles = 200_000;
/** Its index: so many files, at 300 bytes each. */
export const maxIndexBytes = 64 * 1024 * 1024;

/** `index.json` of a support bundle: what is in it, and what could not be had. */
export const bundleIndexSchema = object({
  kind: required(oneOf(["bundle"])),
  version: required(integer(documentVersion, documentVersion)),
  madeAtMs: required(count, "milliseconds since 1970"),
  pipetteVersion: required(sentence),
  nodes: required(rows(nodeName), "whose documents are in it"),
  files: required(
    list(
      object({
        path: required(sentence, "in the bundle"),
        bytes: required(count),
        sha256: required(sentence, "in hexadecimal digits"),
      }),
      0,
      maxBundleFiles,
    ),
  ),
  failures: required(
    list(object({ item: required(sentence), reason: required(sentence) }), 0, maxBundleFiles),
    "what is not in it, and why",
  ),
});

export type BundleIndex = Infer<typeof bundleIndexSchema>;
