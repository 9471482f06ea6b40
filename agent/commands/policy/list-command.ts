import { networkPolicies, pods } from "../../../shared/policy/mod.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printableLines } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import { askCluster, clusterOptions } from "./ask-cluster.ts";
import { podsOf } from "./cluster-view.ts";
import { ControllerView, type Enforced, enforcedOn } from "./in-force.ts";
import { directionsText, podsWords, policyName } from "./policy-words.ts";

const action = "list the network policies";

/** About how many policies the controller is asked: each is a question of its own. */
const mostAsked = 500;
const askedAtOnce = 16;

interface Listed {
  readonly policy: string;
  readonly selects: string;
  readonly pods: number;
  readonly isolates: string;
  readonly enforced: Enforced;
  readonly problems: readonly string[];
}

export const listCommand = defineCommand({
  action,
  about: `Shows the cluster's network policies: how many pods each isolates, and in what they send or receive; what of it is not
understood, and allows nothing; and on how many of the nodes with such pods it is enforced as it is now, where the
controller tells. Of all namespaces, unless one is given.`,
  options: clusterOptions,
  exits: {
    0: "done, also when there is none",
    1: "one is not understood as a whole, or not enforced on all of its nodes",
    2: "cannot tell, or wrong arguments",
  },
  run: ({ options: given }, io) =>
    askCluster(given, action, io, async (cluster) => {
      const within = given.namespace === undefined ? {} : { namespace: given.namespace };
      const policies = await cluster.list(networkPolicies, within);
      const known = Map.groupBy(await cluster.list(pods, within), ({ namespace }) => namespace);
      const controller = new ControllerView(cluster);
      const listed: Listed[] = [];
      for (let i = 0; i < policies.length; i += askedAtOnce)
        listed.push(
          ...(await Promise.all(
            policies.slice(i, i + askedAtOnce).map(async (policy) => {
              const isolated = podsOf(policy, known.get(policy.namespace) ?? []);
              const reports = i < mostAsked ? await controller.reportsOf(policy) : tooMany;
              return {
                policy: policyName(policy),
                selects: podsWords(policy.pods),
                pods: isolated.length,
                isolates: directionsText(policy),
                enforced: enforcedOn(policy, isolated, reports),
                problems: policy.problems,
              };
            }),
          )),
        );
      const sorted = listed.toSorted((a, b) => (a.policy < b.policy ? -1 : 1));
      if (given.json) io.stdout(formatJson({ policies: sorted }));
      else io.stdout(sorted.length === 0 ? "No network policies\n" : listText(sorted));
      return sorted.every(isWell) ? exitStatus.done : exitStatus.failed;
    }),
});

const tooMany = {
  t: "unknown",
  why: `only about ${mostAsked} policies is the controller asked: give a namespace`,
} as const;

const isWell = ({ enforced, problems }: Listed): boolean =>
  problems.length === 0 && (enforced.t === "unknown" || enforced.lacking.length === 0);

function listText(listed: readonly Listed[]): string {
  const unknown = new Set(listed.flatMap(({ enforced }) => (enforced.t === "unknown" ? [enforced.why] : [])));
  const lacking = listed.flatMap(({ policy, enforced }) =>
    enforced.t === "known" ? enforced.lacking.map((text) => `${policy} on ${text}`) : [],
  );
  const problems = listed.flatMap(({ policy, problems: all }) =>
    all.length === 0 ? [] : [`${policy} has parts that are not understood, and allow nothing: ${all.join(", ")}`],
  );
  const table = formatTable([
    ["POLICY", "SELECTS", "PODS", "ISOLATES", "ENFORCED"],
    ...listed.map(({ policy, selects, pods: count, isolates, enforced }) => [
      policy,
      selects,
      String(count),
      isolates,
      enforced.t === "unknown" ? "?" : `${enforced.on}/${enforced.of}`,
    ]),
  ]);
  const more = [...lacking, ...problems, ...[...unknown].map((why) => `enforced where is not known: ${why}`)];
  return `${table}${printableLines(more.map((text) => `${text}\n`).join(""))}`;
}
