import { Refusal } from "../../shared/access/mod.ts";
import { type Direction, evaluate, type Pod, type Side, type Verdict } from "../../shared/policy/mod.ts";
import { NetworkPolicyEvaluation } from "../../shared/proto/control-plane-reports.ts";
import type { ApiKind } from "../watches/mod.ts";
import type { Evaluation } from "./bodies.ts";
import type { ServedState } from "./served-state.ts";

/** In place of a rule's number: no rule decides but that the pod is isolated, as Antrea's controller has it. */
const noRule = 2 ** 31 - 1;

/**
 * May one pod reach the other, and which policy decides. Antrea's request knows no ports; the query `protocol` and `port`
 * asks for one, and without it only rules for all ports count. @throws {Refusal} for pods that are not there
 */
export function answerEvaluation(
  { computation, cluster }: ServedState,
  asked: Evaluation,
  query: URLSearchParams,
): Evaluation {
  const podOf = (entity: NonNullable<Evaluation["request"]>["source"]): Pod => {
    const { namespace = "", name = "" } = entity?.pod ?? {};
    const pod = computation.pod(`${namespace}/${name}`);
    if (pod === undefined) throw new Refusal(404, `there is no pod "${name}" in namespace "${namespace}"`);
    return pod;
  };
  const end = (pod: Pod) => ({ t: "pod", pod, ...(pod.ips[0] === undefined ? {} : { ip: pod.ips[0] }) }) as const;
  const [source, destination] = [podOf(asked.request?.source), podOf(asked.request?.destination)];
  const traffic = trafficOf(query);
  const verdict = evaluate(cluster, { source: end(source), destination: end(destination), traffic });
  const response = responseOf(verdict);
  return { ...asked, ...(response === undefined ? {} : { response }) };
}

function trafficOf(query: URLSearchParams): { readonly protocol: string; readonly port?: number } {
  const [protocol = "any", port] = [query.get("protocol") ?? undefined, query.get("port")];
  if (port === null) return { protocol };
  if (!/^\d{1,5}$/.test(port)) throw new Refusal(400, "the port is no number");
  return { protocol, port: Number(port) };
}

/** The side that denies before the one that allows. */
function responseOf({ egress, ingress }: Verdict): Evaluation["response"] {
  const sides: readonly (readonly [Direction, Side])[] = [
    ["egress", egress],
    ["ingress", ingress],
  ];
  for (const [direction, side] of sides)
    if (side.t === "denied") return decision(direction, side.isolatedBy[0], noRule, "Drop");
  for (const [direction, side] of sides)
    if (side.t === "allowed") return decision(direction, side.by[0]?.policy, side.by[0]?.rule ?? noRule, "Allow");
  return undefined;
}

function decision(
  direction: Direction,
  policy: { readonly namespace: string; readonly name: string; readonly uid: string } | undefined,
  ruleIndex: number,
  action: string,
): Evaluation["response"] {
  if (policy === undefined) return undefined;
  const { namespace, name, uid } = policy;
  return {
    networkPolicy: { type: "K8sNetworkPolicy", namespace, name, uid },
    ruleIndex,
    rule: { direction: direction === "ingress" ? "In" : "Out", name: "", action },
  };
}

export const evaluationKind: ApiKind<Evaluation> = {
  name: "NetworkPolicyEvaluation",
  codec: NetworkPolicyEvaluation,
  json: ({ request, response }) => ({
    metadata: { creationTimestamp: null },
    request,
    ...(response === undefined ? {} : { response }),
  }),
};
