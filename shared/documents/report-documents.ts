import { boolean, integer, list, object, oneOf, optional, required } from "../schema/mod.ts";
import { attachmentKeys, count, documentVersion, nodeName, sentence, sentences } from "./parts.ts";
import { saidByDoctor, saidOfNode } from "./state-documents.ts";

/** What commands make of documents: `pipette status` and `pipette doctor` as JSON or YAML. */

const headOfReport = <const K extends string>(kind: K) =>
  ({
    kind: required(oneOf([kind]), "what the document is about"),
    version: required(integer(documentVersion, documentVersion), "of the document's shape"),
    node: optional(nodeName, "the node that it is about; absent where the agent of a socket did not say"),
  }) as const;

const { system: _system, ...said } = saidOfNode;

/** All that a store holds: at the node's own socket there may be more than rows of a document. */
const maxLeases = 10_000_000;

/** `pipette status -o json`. */
const statusSchema = object({
  ...headOfReport("status"),
  status: required(
    object({ version: required(sentence, "the release of the agent"), system: optional(sentence), ...said }),
    "what the agent says of itself",
  ),
  leases: required(
    list(
      object({
        ...attachmentKeys,
        address: required(sentence, "without prefix length"),
        gateway: required(sentence, "empty where there is none"),
        state: required(oneOf(["allocated", "releasing", "cooling"])),
        podNamespace: required(sentence, "empty where the runtime did not name the pod"),
        podName: required(sentence),
        podUid: required(sentence),
        generation: required(count),
        allocatedAtMs: required(count, "milliseconds since 1970"),
        releasedAtMs: required(count, "0: it is not released"),
      }),
      0,
      maxLeases,
    ),
  ),
  interfaces: required(
    list(
      object({
        ...attachmentKeys,
        hostIfname: required(sentence, "the interface on the node"),
        ownLease: required(boolean, "the address is a lease of Pipette's own allocator"),
      }),
      0,
      maxLeases,
    ),
  ),
  database: required(sentences, "what is wrong with the lease database; looked for at the node's own socket only"),
});

/** `pipette doctor -o json`. */
const doctorSchema = object({
  ...headOfReport("doctor"),
  ...saidByDoctor,
  repaired: required(
    list(
      object({
        what: required(sentence),
        done: optional(sentence, "what was done about it"),
        error: optional(sentence, "why nothing was done"),
      }),
      0,
      maxLeases,
    ),
    "by --repair",
  ),
});

export const reportDocuments = {
  status: { schema: statusSchema, title: "the status of a node, as pipette status tells it" },
  doctor: { schema: doctorSchema, title: "what pipette doctor finds on a node" },
} as const;
