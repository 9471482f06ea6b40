import type { AddressesDocument, DocumentPool, NodeDocument } from "../../shared/documents/mod.ts";

/** As Kubernetes has conditions; when one became so is added where it is written. */
export interface NodeCondition {
  readonly type: "Ready" | "DataPath" | "Ipam" | "Policy" | "Peers" | "Configuration";
  readonly status: "True" | "False";
  /** One word, for programs. */
  readonly reason: string;
  readonly message: string;
}

/** `status` of a PipetteNode, as its agent has it. */
export interface NodeStatus {
  readonly agentVersion: string;
  readonly system: string;
  readonly dataPath: string;
  readonly networks: readonly string[];
  /** Addresses of pods. */
  readonly addresses: readonly {
    readonly network: string;
    readonly range: string;
    readonly total: string;
    readonly allocated: number;
    readonly free: string;
  }[];
  /** Other nodes whose pods are reached, and all that are probed; absent where nobody probes. */
  readonly peers?: { readonly reachable: number; readonly total: number };
  readonly conditions: readonly NodeCondition[];
}

/** The API server takes more; what is longer is for `pipette get` and `pipette doctor`. */
const maxMessageChars = 1_000;
const maxPools = 64;
/** From here on somebody has to act before pods wait: at 80 % soon, at 95 % now. */
export const fullParts = { soon: 0.8, now: 0.95 } as const;

/** How long a way to another node has to be lost until the cluster is told: a node that only boots is not worth a word of all others. */
const toldAfterMs = 60_000;
/** Other nodes that a message names. */
const maxNamed = 5;

/** What a node tells the cluster of itself, from the documents that people see. Pure. */
export function nodeStatus(node: NodeDocument, { pools }: AddressesDocument, nowMs: number): NodeStatus {
  const { reachable, total } = node.peers ?? {};
  return {
    ...(reachable === undefined || total === undefined ? {} : { peers: { reachable, total } }),
    ...{ agentVersion: node.agentVersion, system: node.system, dataPath: node.dataPath, networks: node.networks },
    addresses: pools
      .slice(0, maxPools)
      .map(({ network, range, total, allocated, free }) => ({ network, range, total, allocated, free })),
    conditions: [
      ready(node),
      dataPath(node),
      ipam(node, pools),
      ...(node.policies === ""
        ? []
        : [holds("Policy", "InForce", "NotInForce", node.policyDifferences, node.policies)]),
      ...(node.cluster === "" ? [] : [peers(node, nowMs)]),
      holds(
        "Configuration",
        "InForce",
        "Refused",
        node.configuration,
        "agent.yaml and the runtime's file are in place",
      ),
    ],
  };
}

function condition(type: NodeCondition["type"], isTrue: boolean, reason: string, message: string): NodeCondition {
  return { type, status: isTrue ? "True" : "False", reason, message: message.slice(0, maxMessageChars) };
}

/** True where there is nothing to say. */
const holds = (
  type: NodeCondition["type"],
  good: string,
  bad: string,
  problems: readonly string[],
  well: string,
): NodeCondition => condition(type, problems.length === 0, problems.length === 0 ? good : bad, summed(problems, well));

function summed(problems: readonly string[], well: string): string {
  const [first] = problems;
  if (first === undefined) return well;
  return problems.length === 1 ? first : `${first} (and ${problems.length - 1} more)`;
}

/** What people do about it does not depend on how many addresses are free now: with the number it would be told anew. */
const fillingUp: Readonly<Record<string, string>> = {
  FillingUp:
    "more than 80 % of the addresses of a network are taken on this node, wanted a larger block before pods wait",
  AlmostExhausted: "more than 95 % of the addresses of a network are taken on this node, wanted a larger block now",
};

/** What somebody has to act on. An agent that only starts or ends wants nobody. */
export const wanting = ({ conditions }: NodeStatus): readonly { readonly reason: string; readonly message: string }[] =>
  conditions.flatMap(({ type, status, reason, message }) => {
    const filling = fillingUp[reason];
    if (filling !== undefined) return [{ reason: `${type}${reason}`, message: filling }];
    if (status === "True" || reason === "Starting" || reason === "Stopping") return [];
    return [{ reason: `${type}${reason}`, message }];
  });

const outagesOf = ({ problems }: NodeDocument): readonly string[] =>
  problems.filter(({ advisory }) => !advisory).map(({ message }) => message);

function ready(node: NodeDocument): NodeCondition {
  const outages = outagesOf(node);
  const states = { starting: "Starting", joining: "WaitsToJoin", stopping: "Stopping", ready: "Outage" } as const;
  if (node.state === "ready" && outages.length === 0)
    return condition("Ready", true, "Serving", "the agent gives pods their network");
  return condition("Ready", false, states[node.state], summed(outages, `the agent is ${node.state}`));
}

function dataPath(node: NodeDocument): NodeCondition {
  const { shortcomings, serviceDifferences, servicesFault } = node;
  const lacks = [...shortcomings, ...serviceDifferences, ...(servicesFault === "" ? [] : [servicesFault])];
  const outages = node.state === "ready" ? outagesOf(node) : [];
  if (outages.length > 0) return condition("DataPath", false, "Broken", summed(outages, ""));
  return holds("DataPath", "InForce", "Shortcomings", lacks, `${node.dataPath} is as it is to be`);
}

/** The part of a pool's addresses that cannot be given out now. */
export function fullness({ total, free, cooling }: DocumentPool): number {
  const [all, left] = [Number(total), Number(free) + cooling];
  return all === 0 ? 1 : 1 - Math.min(left, all) / all;
}

function ipam(node: NodeDocument, pools: readonly DocumentPool[]): NodeCondition {
  const problems = node.problems.filter(({ advisory }) => advisory).map(({ message }) => message);
  if (problems.length > 0) return condition("Ipam", false, "NoNewPods", summed(problems, ""));
  const [fullest] = pools.toSorted((a, b) => fullness(b) - fullness(a));
  if (fullest === undefined) return condition("Ipam", true, "NoPools", "the node has no addresses to give out");
  const { network, range, total, free } = fullest;
  const part = fullness(fullest);
  const message = `of ${total} addresses in ${range} of network "${network}" ${free} are free`;
  const reason = part >= fullParts.now ? "AlmostExhausted" : part >= fullParts.soon ? "FillingUp" : "AddressesFree";
  return condition("Ipam", true, reason, message);
}

function peers(node: NodeDocument, nowMs: number): NodeCondition {
  const { registryTroubles, refusals, cluster } = node;
  const away = registryTroubles.map(({ what, reason }) => `cannot ${what}: ${reason}`);
  if (away.length > 0) return condition("Peers", false, "RegistryAway", summed(away, ""));
  if (refusals.length > 0) return condition("Peers", false, "RecordsRefused", summed(refusals, ""));
  const troubles = (node.peerTroubles ?? []).filter(({ sinceMs }) => sinceMs <= nowMs - toldAfterMs);
  const lost = named(troubles.filter(({ state }) => state === "lost"));
  if (lost !== "")
    return condition("Peers", false, "NotReached", `pods of other nodes are no longer reached: of ${lost}`);
  const narrow = named(troubles.filter(({ state }) => state === "mtu"));
  if (narrow !== "")
    return condition("Peers", false, "MtuTooLarge", `packets of pods' MTU do not reach other nodes: ${narrow}`);
  const silent = named(troubles.filter(({ state }) => state === "silent"));
  const more = silent === "" ? "" : `; pods of ${silent} were never reached since the agent's start`;
  return condition("Peers", true, "Accepted", `${cluster}${more}`);
}

/** Names of nodes, the same as long as they are the same: an event is told once for them. */
function named(troubles: NonNullable<NodeDocument["peerTroubles"]>): string {
  const names = [...new Set(troubles.map(({ node }) => `"${node}"`))].sort();
  const rest = names.length - maxNamed;
  return rest > 0 ? `${names.slice(0, maxNamed).join(", ")} and ${rest} more` : names.join(", ");
}
