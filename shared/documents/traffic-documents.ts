import { boolean, type Infer, integer, object, oneOf, optional, required } from "../schema/mod.ts";
import { attachmentKeys, count, headOf, omitted, rows, sentence, values } from "./parts.ts";

/** What a node does with packets: services, policies, flows. */

/** As `pipette services list --json` has them. */
export const servicesSchema = object({
  ...headOf("services"),
  balanced: required(boolean, "the agent balances services at all"),
  services: required(
    rows(
      object({
        key: required(sentence, "namespace/name:port"),
        protocol: required(sentence),
        clusterIp: required(sentence),
        port: required(count),
        nodePort: required(count, "0: none"),
        externalIps: required(values(sentence)),
        ingressIps: required(values(sentence)),
        restricted: required(boolean, "only `sourceRanges` may use its addresses from outside"),
        sourceRanges: required(values(sentence)),
        affinitySeconds: required(count, "0: none"),
        keepsClient: required(boolean),
        healthCheckNodePort: required(count, "0: none"),
        refused: required(sentence, "why it is not in force; empty where it is"),
        endpoints: required(
          values(
            object({
              address: required(sentence, "with its port"),
              local: required(boolean, "it is on this node"),
              internal: required(boolean, "it answers at the cluster IP"),
              external: required(boolean, "it answers those outside of the cluster"),
              cluster: required(boolean),
            }),
          ),
        ),
        omittedEndpoints: required(count),
      }),
    ),
    "one for each port, by key",
  ),
  omitted,
});

export type ServicesDocument = Infer<typeof servicesSchema>;
export type DocumentService = ServicesDocument["services"][number];

export const policiesSchema = object({
  ...headOf("policies"),
  enforced: required(boolean, "the agent enforces network policies at all"),
  summary: required(sentence, "in words"),
  differences: required(values(sentence), "what is not in force as it is to be"),
  pods: required(
    rows(
      object({
        ...attachmentKeys,
        podNamespace: optional(sentence),
        podName: optional(sentence),
        directions: required(values(oneOf(["ingress", "egress"])), "in which only what a policy allows passes"),
        policies: required(values(sentence), "namespace/name of those that select it"),
      }),
    ),
    "the isolated ones",
  ),
  omitted,
});

export type PoliciesDocument = Infer<typeof policiesSchema>;
export type DocumentPolicedPod = PoliciesDocument["pods"][number];

/**
 * The rules of the data path: flows of Open vSwitch by table, or nftables chains of a bridge. Without a name it has
 * tables and no flows; with the name of a table it has that table's flows too.
 */
export const flowsSchema = object({
  ...headOf("flows"),
  dataPath: required(sentence, "what holds them, in words"),
  tables: required(
    values(
      object({
        name: required(sentence),
        number: optional(integer(0, 255), "of an OpenFlow table"),
        about: optional(sentence, "what it decides, in words"),
        flows: required(count, "flows or rules in it"),
        packets: required(count, "that have matched one, as far as they are counted"),
        bytes: required(count),
      }),
    ),
    "in the order in which packets pass them",
  ),
  table: optional(sentence, "the table whose flows these are"),
  flows: required(
    rows(
      object({
        priority: optional(count),
        packets: optional(count),
        bytes: optional(count),
        match: required(sentence, "which packets, in words"),
        actions: required(sentence, "what becomes of them, in words"),
        purpose: optional(sentence, "what it is there for: the node, a pod, a service, a policy"),
      }),
    ),
    "the highest priority first",
  ),
  omitted,
});

export type FlowsDocument = Infer<typeof flowsSchema>;
export type DocumentTable = FlowsDocument["tables"][number];
export type DocumentFlow = FlowsDocument["flows"][number];
