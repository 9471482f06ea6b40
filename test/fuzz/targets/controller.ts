import { readEvaluation, readReports, readStats, readStatus } from "../../../controller/api/bodies.ts";
import { selectedNode } from "../../../controller/api/node-watch.ts";
import { PolicyReports } from "../../../controller/reports/policy-reports.ts";
import { Refusal } from "../../../shared/access/mod.ts";
import type { Target } from "../engine/target.ts";
import { nestedMutator, protobufFields } from "../mutate/frames.ts";
import { jsonMutator } from "../mutate/json.ts";

const types = ["application/json", "application/vnd.kubernetes.protobuf"];

/** Answers what was read, and nothing where it was refused as a request is. */
async function readOrRefused<T>(read: () => Promise<T> | T): Promise<T | undefined> {
  try {
    return await read();
  } catch (caught) {
    if (!(caught instanceof Refusal) || caught.status < 400 || caught.status >= 500) throw caught;
    return undefined;
  }
}

/** Of a policy that there is: whatever is told of it, it stays a count. */
function take(reports: PolicyReports, traffic: Parameters<PolicyReports["count"]>[1]): void {
  reports.count("uid-1", traffic);
  const sums = Object.values(reports.trafficOf("uid-1") ?? {});
  if (sums.some((sum) => !Number.isFinite(sum) || sum < 0)) throw new Error(`The sums are ${sums.join(", ")}`);
}

export const controller: Target = {
  name: "controller",
  what: "what nodes, operators and other controllers send to the controller of network policies",
  mutators: [
    nestedMutator(protobufFields),
    jsonMutator([
      "nodes",
      "nodeName",
      "generation",
      "trafficStats",
      "packets",
      "uid-1",
      "policies",
      "reportedAtMs",
      "traffic",
    ]),
  ],
  dictionary: [
    "k8s\0",
    "NodeStatsSummary",
    "NetworkPolicyStatus",
    "NetworkPolicyEvaluation",
    "PolicyReports",
    "nodeName=n1",
    "uid-1",
  ],
  maxBytes: 8 * 1024,
  open: () => ({
    run: async (input) => {
      const reports = new PolicyReports();
      const policy = { uid: "uid-1", namespace: "x", name: "p", generation: 1, appliedTo: "", rules: [] };
      reports.follow({
        policies: [{ t: "added", policy, isRewritten: false, nodes: { entered: [], left: [] }, span: new Set() }],
      });
      for (const type of types) {
        const body = { header: () => type, body: async () => input };
        const status = await readOrRefused(() => readStatus(body));
        for (const node of status?.nodes ?? []) reports.enforced("uid-1", { ...node, reportedAtMs: 0 });
        const stats = await readOrRefused(() => readStats(body));
        for (const { trafficStats } of stats?.networkPolicies ?? [])
          if (trafficStats !== undefined) take(reports, trafficStats);
        await readOrRefused(() => readEvaluation(body));
        // Of another controller, which may be of another release.
        const handed = await readOrRefused(() => readReports(body));
        for (const { uid, nodes, traffic } of handed ?? []) {
          for (const node of nodes) reports.enforced(uid, node);
          take(reports, traffic);
        }
      }
      await readOrRefused(() => selectedNode(new URLSearchParams(new TextDecoder().decode(input))));
    },
  }),
};
