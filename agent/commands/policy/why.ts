import { formatIp } from "../../../shared/net/ip.ts";
import type { Cluster, Question } from "../../../shared/policy/mod.ts";
import { type ExplainedSide, type Explanation, explain, type NamedEnd, type NamedRule, reasonText } from "./explain.ts";
import { policyName } from "./policy-words.ts";
import { type PortRange, portRanges, rangesText, trafficOf } from "./port-ranges.ts";

/** Two ends, and what one sends to the other. */
export interface Asked {
  readonly source: NamedEnd;
  readonly destination: NamedEnd;
  /** Absent: whatever there is. Without a port: every port of the protocol. */
  readonly traffic?: Question["traffic"];
}

/** Traffic for which all is the same: who decides it, and who nearly would. */
export interface WhyCase {
  readonly ranges: readonly PortRange[];
  /** The same in words. */
  readonly ports: string;
  /** Endpoints of a service for which it is the same. */
  readonly destinations: readonly string[];
  /** Absent where it is more than one. */
  readonly traffic?: Question["traffic"];
  readonly explanation: Explanation;
}

export interface Why {
  readonly from: string;
  readonly to: string;
  readonly allowed: "all" | "some" | "none";
  readonly sentence: string;
  readonly cases: readonly WhyCase[];
}

/**
 * Answers "may one reach the other, and why".
 * @param asked not empty: several where an end has several addresses or endpoints
 * @param to as people call where it is sent
 */
export function whyOf(cluster: Cluster, asked: readonly Asked[], from: string, to: string): Why {
  const all = merged(asked.flatMap((each) => casesOf(cluster, each)));
  const cases = all.toSorted((a, b) => Number(b.explanation.allowed) - Number(a.explanation.allowed));
  const allowed = cases.filter(({ explanation }) => explanation.allowed);
  const is = allowed.length === cases.length ? "all" : allowed.length === 0 ? "none" : "some";
  return { from, to, allowed: is, sentence: sentenceOf(from, to, is, cases), cases };
}

function sentenceOf(from: string, to: string, allowed: Why["allowed"], cases: readonly WhyCase[]): string {
  const reasons = new Set(cases.map(({ explanation }) => reasonText(explanation)));
  const [first] = cases;
  const isOnePort = cases.every(({ ports }) => ports === first?.ports);
  const at = isOnePort ? ` at ${first?.ports}` : "";
  const because = reasons.size === 1 ? `: ${[...reasons].join("")}` : "";
  if (allowed === "all") return `${from} may reach ${to}${at}${because}`;
  if (allowed === "none") return `${from} may not reach ${to}${at}${because}`;
  const open = cases.filter(({ explanation }) => explanation.allowed);
  if (isOnePort) {
    const [may, all] = [open, cases].map((list) =>
      list.reduce((sum, { destinations }) => sum + destinations.length, 0),
    );
    return `${from} may reach ${may} of ${all} endpoints of ${to} at ${first?.ports}`;
  }
  return `${from} may reach ${to} at ${rangesText(open.flatMap(({ ranges }) => ranges))}, and at nothing else`;
}

function casesOf(cluster: Cluster, { source, destination, traffic }: Asked): WhyCase[] {
  const one = (ports: string, of: Question["traffic"]): WhyCase => ({
    ranges: [],
    ports,
    destinations: [destination.name],
    explanation: explain(cluster, source, destination, of),
  });
  if (traffic?.port !== undefined || traffic?.protocol === "ICMP")
    return [{ ...one(trafficText(traffic), traffic), traffic, ranges: [rangeOf(traffic)] }];
  const policies = [source, destination].flatMap(({ endpoint }) =>
    endpoint.t === "pod" ? [...cluster.policiesIn(endpoint.pod.namespace)] : [],
  );
  const target = destination.endpoint.t === "pod" ? destination.endpoint.pod : undefined;
  const groups = new Map<string, { readonly first: WhyCase; readonly ranges: PortRange[] }>();
  const ranges = portRanges(policies, target);
  for (const range of ranges.filter(({ protocol }) => (traffic?.protocol ?? protocol) === protocol)) {
    const first = one("", trafficOf(range));
    const key = keyOf(first);
    const group = groups.get(key) ?? { first, ranges: [] };
    groups.set(key, group);
    group.ranges.push(range);
  }
  return [...groups.values()].map(({ first, ranges }) => ({ ...first, ranges, ports: rangesText(ranges) }));
}

const rangeOf = ({ protocol, port }: Question["traffic"]): PortRange => ({
  protocol,
  ...(port === undefined ? {} : { first: port, last: port }),
});

const trafficText = ({ protocol, port }: Question["traffic"]): string =>
  port === undefined ? protocol : `${protocol} ${port}`;

/** Cases that differ in nothing but the destination are one. */
function merged(cases: readonly WhyCase[]): readonly WhyCase[] {
  const groups = Map.groupBy(cases, (each) => `${each.ports}\n${keyOf(each)}`);
  return [...groups.values()].map(([first, ...more]) => ({
    ...(first as WhyCase),
    destinations: [...new Set([first as WhyCase, ...more].flatMap(({ destinations }) => destinations))],
  }));
}

function keyOf({ explanation: { allowed, egress, ingress } }: WhyCase): string {
  const side = ({ t, exempt, isolatedBy, allowedBy, otherPort, otherPeer }: ExplainedSide): unknown => [
    ...[t, exempt, isolatedBy.map(policyName), allowedBy],
    // Of what is allowed nothing else matters.
    ...(allowed ? [] : [otherPort.map(({ place }) => place), otherPeer.map(({ place }) => place)]),
  ];
  return JSON.stringify([allowed, side(egress), side(ingress)]);
}

const maxRules = 5;

/** The whole answer for people, after its sentence. */
export function whyText({ sentence, cases }: Why): string {
  const several = cases.length > 1;
  const blocks = cases.map(({ ports, destinations, explanation }) => {
    const { allowed, egress, ingress } = explanation;
    const head = several ? [`${allowed ? "allowed" : "refused"} at ${ports}${to(destinations)}`] : [];
    return [...head, ...sideLines(egress), ...sideLines(ingress)].join("\n");
  });
  return `${[sentence, ...blocks].join("\n\n")}\n`;
}

const to = (destinations: readonly string[]): string =>
  destinations.length < 2 ? "" : `, to ${destinations.slice(0, maxRules).join(", ")}${more(destinations)}`;

const more = (list: readonly unknown[]): string =>
  list.length > maxRules ? ` and ${list.length - maxRules} more` : "";

function sideLines({ direction, says, isolatedBy, allowedBy, otherPort, otherPeer }: ExplainedSide): string[] {
  const rules = (list: readonly NamedRule[], is: string): string[] => [
    ...list.slice(0, maxRules).map(({ policy, place, allows }) => `    ${policy} ${place}: ${is}${allows}`),
    ...(list.length > maxRules ? [`    … and ${list.length - maxRules} more like this`] : []),
  ];
  const problems = isolatedBy.filter((policy) => policy.problems.length > 0);
  return [
    `  ${direction === "egress" ? "sending: " : "receiving:"} ${says}`,
    ...(isolatedBy.length === 0 ? [] : [`    isolated by ${isolatedBy.map(policyName).join(", ")}`]),
    ...rules(allowedBy, ""),
    ...rules(otherPort, "close, but another port: "),
    ...rules(otherPeer, "close, but another peer: "),
    ...problems.map(
      (policy) =>
        `    ${policyName(policy)} has parts that are not understood, and allow nothing: ${policy.problems.join(", ")}`,
    ),
  ];
}

/** The same for programs. */
export function whyObject({ from, to: destination, allowed, sentence, cases }: Why): Record<string, unknown> {
  const side = ({ isolatedBy, ...rest }: ExplainedSide): unknown => ({
    ...rest,
    isolatedBy: isolatedBy.map((policy) => ({
      policy: policyName(policy),
      uid: policy.uid,
      generation: policy.generation,
      problems: policy.problems,
    })),
  });
  const address = ({ endpoint }: NamedEnd): string | undefined =>
    endpoint.ip === undefined ? undefined : formatIp(endpoint.ip);
  return {
    from,
    to: destination,
    allowed,
    sentence,
    cases: cases.map(({ ports, destinations, explanation }) => ({
      ports,
      destinations,
      allowed: explanation.allowed,
      addresses: { source: address(explanation.source), destination: address(explanation.destination) },
      egress: side(explanation.egress),
      ingress: side(explanation.ingress),
    })),
  };
}
