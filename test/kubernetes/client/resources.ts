import { type FieldTable, objectMeta } from "../../../shared/kubernetes/mod.ts";

/** What a controller reads of the kinds that matter to it, by the numbers of Kubernetes' generated.proto. */
const labelSelector: FieldTable = {
  1: ["matchLabels", "map"],
  2: ["matchExpressions", "messages", { 1: ["key", "string"], 2: ["operator", "string"], 3: ["values", "strings"] }],
};

const peer: FieldTable = {
  1: ["podSelector", "message", labelSelector],
  2: ["namespaceSelector", "message", labelSelector],
  3: ["ipBlock", "message", { 1: ["cidr", "string"], 2: ["except", "strings"] }],
};

const policyPort: FieldTable = { 1: ["protocol", "string"], 2: ["port", "intOrString"], 3: ["endPort", "integer"] };

const rule = (peers: "from" | "to"): FieldTable => ({
  1: ["ports", "messages", policyPort],
  2: [peers, "messages", peer],
});

const containerPorts: FieldTable = {
  1: ["name", "string"],
  3: ["containerPort", "integer"],
  4: ["protocol", "string"],
};

export const podFields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: [
    "spec",
    "message",
    {
      2: ["containers", "messages", { 6: ["ports", "messages", containerPorts] }],
      10: ["nodeName", "string"],
      11: ["hostNetwork", "boolean"],
    },
  ],
  3: ["status", "message", { 1: ["phase", "string"], 12: ["podIPs", "messages", { 1: ["ip", "string"] }] }],
};

export const policyFields: FieldTable = {
  1: ["metadata", "message", objectMeta],
  2: [
    "spec",
    "message",
    {
      1: ["podSelector", "message", labelSelector],
      2: ["ingress", "messages", rule("from")],
      3: ["egress", "messages", rule("to")],
      4: ["policyTypes", "strings"],
    },
  ],
};
