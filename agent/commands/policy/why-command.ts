import { type NetworkPolicy, namespaces, networkPolicies } from "../../../shared/policy/mod.ts";
import { defineCommand, type OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printableLines } from "../../../shared/terminal/printable.ts";
import { type AskedCluster, askCluster, cannotTell, clusterOptions, refuse } from "./ask-cluster.ts";
import { ClusterView } from "./cluster-view.ts";
import { endRule, type Found, findEnd, questionsOf, readEnd, type WrittenTraffic } from "./ends.ts";
import type { NamedEnd } from "./explain.ts";
import { ControllerView, stateOn } from "./in-force.ts";
import { policyName } from "./policy-words.ts";
import { type Asked, type Why, whyObject, whyOf, whyText } from "./why.ts";

const action = "say why";

const protocols = ["TCP", "UDP", "SCTP", "ICMP"];

const options = {
  port: {
    value: "PORT",
    rule: {
      wrong: (text: string) =>
        /^\d+$/.test(text) && (Number(text) < 1 || Number(text) > 65_535) ? `"${text}"` : undefined,
      wanted: "a port from 1 to 65535, or its name",
    },
    help: "the destination's, a service's where it is one; by number or name (default: whatever rules tell apart)",
  },
  protocol: {
    value: "PROTOCOL",
    rule: {
      wrong: (text: string) => (protocols.includes(text.toUpperCase()) ? undefined : `"${text}"`),
      wanted: "TCP, UDP, SCTP or ICMP",
    },
    help: "TCP, UDP, SCTP or ICMP (default TCP, where there is a port)",
  },
  ...clusterOptions,
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const whyCommand = defineCommand({
  action,
  about: `Says whether one may send to the other by the cluster's network policies, which policies isolate them, which rules
let it pass or come close, and what the nodes concerned have in force. Judges the first packet of a connection, as it
is behind services; answers follow it.`,
  operands: [
    { name: "SRC", help: "namespace/pod, pod, an address or node/NAME" },
    { name: "DST", help: "the same, or service/NAME (of another namespace: service/NAMESPACE/NAME)" },
  ],
  options,
  exits: {
    0: "it may; without --port: at some port, or for some of a service's endpoints",
    1: "it may not",
    2: "cannot tell, or wrong arguments",
    3: "there is no such pod, node, service, port or endpoint",
  },
  run: ({ options: given, operands: [from = "", to = ""] }, io) => {
    const protocol = given.protocol?.toUpperCase() ?? "TCP";
    if (protocol === "ICMP" && given.port !== undefined)
      return Promise.resolve(refuse(io, action, "ICMP has no ports", exitStatus.wrongArguments));
    const isAsked = given.port !== undefined || given.protocol !== undefined;
    const traffic = isAsked ? { protocol, ...(given.port === undefined ? {} : { port: given.port }) } : undefined;
    return askCluster(given, action, io, async (cluster) => {
      const answer = await answerWhy(cluster, from, to, traffic);
      if ("is" in answer) return refuse(io, action, answer.is, answer.status);
      const { why, inForce } = answer;
      if (given.json) io.stdout(formatJson({ ...whyObject(why), inForce }));
      else io.stdout(printableLines(`${whyText(why)}${inForceText(inForce)}`));
      return why.allowed === "none" ? exitStatus.failed : exitStatus.done;
    });
  },
});

interface Answer {
  readonly why: Why;
  readonly inForce: InForce;
}

async function answerWhy(
  cluster: AskedCluster,
  from: string,
  to: string,
  traffic: WrittenTraffic | undefined,
): Promise<Answer | { readonly is: string; readonly status: number }> {
  const found: Found[] = [];
  for (const text of [from, to]) {
    const written = readEnd(text, cluster.namespace);
    if (written === undefined)
      return { is: `"${text}" is no end of a connection, wanted ${endRule}`, status: cannotTell };
    found.push(await findEnd(cluster, written));
  }
  const [source, destination] = found;
  if (source === undefined || destination === undefined) return { is: "an end is missing", status: cannotTell };
  if ("is" in source) return { is: source.is, status: exitStatus.notThere };
  if ("is" in destination) return { is: destination.is, status: exitStatus.notThere };
  if ("service" in source) return { is: `${source.name} sends nothing, wanted a pod`, status: cannotTell };
  const asked = questionsOf(source, destination, traffic);
  if (typeof asked === "string") return { is: asked, status: exitStatus.notThere };
  const view = await viewOf(cluster, asked);
  const why = whyOf(view, asked, source.name, destination.name);
  return { why, inForce: await whatIsInForce(new ControllerView(cluster), why) };
}

/** As much of the cluster as decides about these ends. */
async function viewOf(cluster: AskedCluster, asked: readonly Asked[]): Promise<ClusterView> {
  const ends = asked.flatMap(({ source, destination }) => [source, destination]);
  const names = new Set(ends.flatMap(({ endpoint }) => (endpoint.t === "pod" ? [endpoint.pod.namespace] : [])));
  const labels = [];
  const policies: NetworkPolicy[] = [];
  for (const namespace of names) {
    labels.push(...(await cluster.list(namespaces, { fields: `metadata.name=${namespace}` })));
    policies.push(...(await cluster.list(networkPolicies, { namespace })));
  }
  return new ClusterView([], labels, policies);
}

/** What the nodes of isolated pods have in force of the policies that isolate them. */
export interface InForce {
  readonly policies: readonly {
    readonly node: string;
    readonly of: string;
    readonly policy: string;
    /** Absent: as it is now. */
    readonly not?: string;
  }[];
  /** Whether the controller comes to the same; absent where it was not asked, or does not answer. */
  readonly controllerAgrees?: boolean;
}

async function whatIsInForce(controller: ControllerView, why: Why): Promise<InForce> {
  const found = new Map<string, InForce["policies"][number]>();
  for (const { explanation } of why.cases)
    for (const [side, { name, endpoint }] of [
      [explanation.egress, explanation.source],
      [explanation.ingress, explanation.destination],
    ] as const) {
      const node = endpoint.t === "pod" ? endpoint.pod.node : undefined;
      if (node === undefined) continue;
      for (const policy of side.isolatedBy) {
        const not = stateOn(node, policy, await controller.reportsOf(policy));
        const of = policyName(policy);
        found.set(`${node} ${of}`, { node, of: name, policy: of, ...(not === undefined ? {} : { not }) });
      }
    }
  const agrees = await agreement(controller, why);
  return { policies: [...found.values()], ...(agrees === undefined ? {} : { controllerAgrees: agrees }) };
}

/** Only where there is one question, which its evaluation knows how to ask. */
async function agreement(controller: ControllerView, { cases }: Why): Promise<boolean | undefined> {
  const [only] = cases;
  if (only === undefined || cases.length > 1 || only.traffic === undefined) return undefined;
  const pod = ({ endpoint }: NamedEnd) => (endpoint.t === "pod" ? endpoint.pod : undefined);
  const [source, destination] = [pod(only.explanation.source), pod(only.explanation.destination)];
  if (source === undefined || destination === undefined) return undefined;
  const allows = await controller.allows({ source, destination }, only.traffic);
  return allows === undefined ? undefined : allows === only.explanation.allowed;
}

function inForceText({ policies, controllerAgrees }: InForce): string {
  const lines = policies.map(
    ({ node, policy, not }) => `  ${policy} on node ${node}: ${not ?? "enforced as it is now"}`,
  );
  const agrees =
    controllerAgrees === undefined
      ? []
      : [
          controllerAgrees
            ? "  the controller comes to the same"
            : "  the controller comes to another answer: it has not seen the last change, or nobody can tell it",
        ];
  return policies.length + agrees.length === 0 ? "" : `\nin force\n${[...lines, ...agrees].join("\n")}\n`;
}
