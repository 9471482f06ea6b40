import type { DocumentPolicedPod } from "../../shared/documents/mod.ts";
import { podName } from "../model/pods.ts";
import type { Health } from "../parts/mark.tsx";
import { Card, Faults, Page } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { counted, listed } from "../parts/words.ts";
import { about, can } from "../stream/connection.ts";
import { documentsOf } from "../stream/store.ts";
import { MatrixCard } from "./policy-matrix.tsx";
import { WhatIf } from "./policy-what-if.tsx";
import { Why } from "./policy-why.tsx";

/** Where nobody enforces policies, and nobody can be asked about them, there is nothing to show. */
export const isPolicyThere = (): boolean =>
  can("why") || documentsOf("node").some(({ document }) => (document?.policies ?? "") !== "");

interface NodePod {
  readonly node: string;
  readonly pod: DocumentPolicedPod;
}

export function Policies() {
  const documents = documentsOf("policies");
  const isolated = documents.flatMap(({ node, document }) =>
    (document?.pods ?? []).map((pod): NodePod => ({ node, pod })),
  );
  const differences = documents.flatMap(({ node, document }) =>
    (document?.differences ?? []).map((text) => `${node}: ${text}`),
  );
  const enforcing = documents.filter(({ document }) => document?.enforced).map(({ node }) => node);
  const health: Health = differences.length > 0 ? "bad" : enforcing.length === 0 ? "unknown" : "good";
  return (
    <Page title="Policies" health={health} answer={answerOf(isolated, differences, enforcing)}>
      <Faults of={documents} />
      {differences.length > 0 && (
        <Card title="Not in force as it is to be">
          <ul class="reasons">
            {differences.slice(0, 20).map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </Card>
      )}
      {can("why") && <Why />}
      {can("matrix") && <MatrixCard />}
      {can("what-if") && <WhatIf />}
      <Card title="Isolated pods">
        <Table
          caption="Pods that policies isolate"
          columns={[
            { title: "Pod", text: ({ pod }) => podName(pod) },
            { title: "Node", text: ({ node }) => node },
            { title: "Isolated in", text: ({ pod }) => pod.directions.join(" and ") },
            { title: "By", text: ({ pod }) => listed(pod.policies, 4) },
          ]}
          rows={isolated}
          omitted={documents.reduce((sum, { document }) => sum + (document?.omitted ?? 0), 0)}
          keyOf={({ node, pod }) => `${node} ${pod.containerId} ${pod.ifname}`}
          empty="No pod is isolated: every pod may reach every other"
        />
      </Card>
    </Page>
  );
}

/** Can they talk, and why? */
function answerOf(isolated: readonly NodePod[], differences: readonly string[], enforcing: readonly string[]): string {
  if (about.value?.withoutNodes !== undefined)
    return "Who may reach whom is told here; what is in force on nodes, only to who may look at nodes.";
  if (enforcing.length === 0)
    return can("why") ? "No agent enforces policies; the cluster's can be asked here." : "No agent enforces policies.";
  if (differences.length > 0) return `Policies are not in force as they are to be: ${listed(differences, 1)}.`;
  const policies = new Set(isolated.flatMap(({ pod }) => pod.policies));
  if (isolated.length === 0) return `No policy isolates a pod of ${listed(enforcing)}: all may talk to each other.`;
  return `${counted(policies.size, "policy isolates", "policies isolate")} ${counted(isolated.length, "pod")} on ${listed(enforcing)}, all in force.`;
}
