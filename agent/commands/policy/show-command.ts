import { type Direction, isAmong, type NetworkPolicy, type Pod, type Rule } from "../../../shared/policy/mod.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { counted, formatJson, printableLines } from "../../../shared/terminal/printable.ts";
import { askCluster, cannotTell, clusterOptions, refuse } from "./ask-cluster.ts";
import { type ClusterView, podsOf, readCluster } from "./cluster-view.ts";
import { readEnd } from "./ends.ts";
import { listText } from "./explain.ts";
import { ControllerView, type Enforced, enforcedOn } from "./in-force.ts";
import { placeOf, podsWords, policyName, ruleWords } from "./policy-words.ts";

const action = "show the network policy";

export const showCommand = defineCommand({
  action,
  about: `Shows one network policy in words: the pods that it isolates, what each rule allows, which pods its selectors choose
now, which numbers the names of ports have, and on which nodes it is not enforced as it is now.`,
  operands: [{ name: "NAME", help: "of the policy: namespace/name, or name" }],
  options: clusterOptions,
  exits: { 2: "cannot tell, or wrong arguments", 3: "there is no such policy" },
  run: ({ options: given, operands: [text = ""] }, io) =>
    askCluster(given, action, io, async (cluster) => {
      const written = readEnd(text, cluster.namespace);
      if (written?.t !== "pod")
        return refuse(io, action, `"${text}" is no name, wanted namespace/name, or name`, cannotTell);
      const view = await readCluster(cluster);
      const policy = view.policiesIn(written.namespace).find(({ name }) => name === written.name);
      if (policy === undefined)
        return refuse(
          io,
          action,
          `there is no NetworkPolicy "${written.name}" in namespace "${written.namespace}"`,
          exitStatus.notThere,
        );
      const isolated = podsOf(policy, view.pods);
      const enforced = enforcedOn(policy, isolated, await new ControllerView(cluster).reportsOf(policy));
      const shown = shownPolicy(view, policy, isolated);
      if (given.json) io.stdout(formatJson({ ...shown, enforced }));
      else io.stdout(printableLines(shownText(shown, enforced)));
      return exitStatus.done;
    }),
});

interface ShownPart {
  /** `ingress[0], from[1]` */
  readonly place: string;
  /** What it comes to now. */
  readonly is: string;
}

interface ShownPolicy {
  readonly policy: string;
  readonly uid: string;
  readonly generation: number;
  readonly selects: string;
  readonly pods: readonly string[];
  readonly nodes: number;
  /** By directions in which it isolates. */
  readonly rules: Partial<
    Readonly<Record<Direction, readonly { readonly allows: string; readonly parts: readonly ShownPart[] }[]>>
  >;
  readonly problems: readonly string[];
}

export function shownPolicy(view: ClusterView, policy: NetworkPolicy, isolated: readonly Pod[]): ShownPolicy {
  const { uid, generation, namespace, problems } = policy;
  const rulesIn = (direction: Direction): ShownPolicy["rules"] => {
    const rules = policy[direction];
    if (rules === undefined) return {};
    return {
      [direction]: rules.map((rule, index) => ({
        allows: ruleWords(direction, namespace, rule),
        parts: partsOf(view, policy, { direction, rule, index, isolated }),
      })),
    };
  };
  return {
    policy: policyName(policy),
    uid,
    generation,
    selects: podsWords(policy.pods),
    pods: isolated.map(policyName),
    nodes: new Set(isolated.flatMap(({ node }) => node ?? [])).size,
    rules: { ...rulesIn("ingress"), ...rulesIn("egress") },
    problems,
  };
}

interface RuleOf {
  readonly direction: Direction;
  readonly rule: Rule;
  readonly index: number;
  readonly isolated: readonly Pod[];
}

/** What selectors and names come to. */
function partsOf(
  view: ClusterView,
  { namespace }: NetworkPolicy,
  { direction, rule, index, isolated }: RuleOf,
): ShownPart[] {
  const chosen = (rule.peers ?? []).map((peer) =>
    peer.t === "pods" ? view.pods.filter((pod) => isAmong(view, namespace, peer, pod)) : undefined,
  );
  const peers = chosen.flatMap((found, peer) =>
    found === undefined ? [] : [{ place: placeOf(direction, { rule: index, peer }), is: podsText(found) }],
  );
  // Names are those of the pods that receive.
  const targets =
    direction === "ingress" ? isolated : rule.peers === undefined ? view.pods : chosen.flatMap((found) => found ?? []);
  const ports = (rule.ports ?? []).flatMap(({ port, protocol }, at) => {
    if (typeof port !== "string") return [];
    const numbers = targets.flatMap((pod) =>
      pod.ports.filter((each) => each.name === port && each.protocol === protocol).map((each) => each.port),
    );
    const byNumber = [...Map.groupBy(numbers, (number) => number)];
    const is = byNumber.map(([number, pods]) => `${number} of ${counted(pods.length, "pod")}`);
    return [{ place: placeOf(direction, { rule: index, port: at }), is: is.length === 0 ? "of no pod" : listText(is) }];
  });
  return [...peers, ...ports];
}

const podsText = (pods: readonly Pod[]): string =>
  pods.length === 0 ? "no pod" : `${counted(pods.length, "pod")}: ${listText(pods.map(policyName))}`;

const does = { ingress: "receive", egress: "send" } as const;

function shownText(
  { policy, generation, selects, pods, nodes, rules, problems }: ShownPolicy,
  enforced: Enforced,
): string {
  const directions = (["ingress", "egress"] as const).flatMap((direction) => {
    const list = rules[direction];
    if (list === undefined) return [`does not isolate what they ${does[direction]}`];
    return [
      `isolates what they ${does[direction]}, but for:${list.length === 0 ? " nothing" : ""}`,
      ...list.flatMap(({ allows, parts }, index) => [
        `  ${direction}[${index}]: ${allows}`,
        ...parts.map(({ place, is }) => `    ${place}: ${is}`),
      ]),
    ];
  });
  const lines = [
    `NetworkPolicy ${policy}, generation ${generation}`,
    `applies to ${selects} of its namespace: ${counted(pods.length, "pod")} on ${counted(nodes, "node")}${pods.length === 0 ? "" : `: ${listText(pods)}`}`,
    ...directions,
    ...(problems.length === 0 ? [] : [`not understood, and allowing nothing: ${problems.join(", ")}`]),
    ...(enforced.t === "unknown"
      ? [`enforced where is not known: ${enforced.why}`]
      : [
          `enforced on ${enforced.on} of ${counted(enforced.of, "node")}`,
          ...enforced.lacking.map((text) => `  ${text}`),
        ]),
  ];
  return `${lines.join("\n")}\n`;
}
