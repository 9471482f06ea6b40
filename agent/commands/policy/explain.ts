import {
  type Cluster,
  type Direction,
  type Endpoint,
  evaluate,
  type Match,
  type NearMatch,
  type NetworkPolicy,
  nearMatches,
  type Question,
  type Side,
} from "../../../shared/policy/mod.ts";
import { matchWords, placeOf, policyName } from "./policy-words.ts";

/** Who sends or receives, and how people call it. */
export interface NamedEnd {
  readonly name: string;
  readonly endpoint: Endpoint;
}

/** A rule that decides, or nearly does. */
export interface NamedRule {
  readonly policy: string;
  /** `ingress[0], from[1], ports[0]`. */
  readonly place: string;
  readonly allows: string;
}

/** What one end says to the traffic, and why. */
export interface ExplainedSide {
  readonly direction: Direction;
  readonly of: string;
  readonly t: Side["t"];
  readonly exempt?: Exemption;
  readonly isolatedBy: readonly NetworkPolicy[];
  readonly allowedBy: readonly NamedRule[];
  /** Rules that match but for the port, then those that match but for the peer. */
  readonly otherPort: readonly NamedRule[];
  readonly otherPeer: readonly NamedRule[];
  /** In one sentence. */
  readonly says: string;
}

export interface Explanation {
  readonly source: NamedEnd;
  readonly destination: NamedEnd;
  readonly allowed: boolean;
  readonly egress: ExplainedSide;
  readonly ingress: ExplainedSide;
}

export function explain(
  cluster: Cluster,
  source: NamedEnd,
  destination: NamedEnd,
  traffic: Question["traffic"],
): Explanation {
  const question = { source: source.endpoint, destination: destination.endpoint, traffic };
  const { allowed, egress, ingress } = evaluate(cluster, question);
  const side = (direction: Direction, is: Side, end: NamedEnd): ExplainedSide =>
    explainSide(direction, is, end, nearMatches(cluster, direction, question));
  return {
    source,
    destination,
    allowed,
    egress: side("egress", egress, source),
    ingress: side("ingress", ingress, destination),
  };
}

function explainSide(direction: Direction, side: Side, end: NamedEnd, near: readonly NearMatch[]): ExplainedSide {
  const named = (match: Match): NamedRule => ({
    policy: policyName(match.policy),
    place: placeOf(direction, match),
    allows: matchWords(direction, match),
  });
  const lacking = (what: NearMatch["lacks"]): NamedRule[] =>
    near.filter(({ lacks }) => lacks === what).map((match) => named(match));
  return {
    direction,
    of: end.name,
    t: side.t,
    ...(side.t === "exempt" ? { exempt: side.because } : {}),
    isolatedBy: "isolatedBy" in side ? side.isolatedBy : [],
    allowedBy: side.t === "allowed" ? side.by.map(named) : [],
    otherPort: lacking("port"),
    otherPeer: lacking("peer"),
    says: sideSentence(direction, side, end),
  };
}

type Exemption = Extract<Side, { t: "exempt" }>["because"];

const does = { egress: "sends", ingress: "receives" } as const;

function sideSentence(direction: Direction, side: Side, { name, endpoint }: NamedEnd): string {
  switch (side.t) {
    case "exempt":
      return exemptionSentence(side.because, name, endpoint);
    case "open":
      return `no policy isolates ${name} in what it ${does[direction]}`;
    case "allowed": {
      const rules = side.by.map(({ policy, rule }) => `${policyName(policy)} ${direction}[${rule}]`);
      return `${listText(rules)} ${rules.length === 1 ? "allows" : "allow"} what ${name} ${does[direction]}`;
    }
    case "denied": {
      const verb = side.isolatedBy.length === 1 ? "isolates" : "isolate";
      return `${listText(side.isolatedBy.map(policyName))} ${verb} ${name} in what it ${does[direction]}, and no rule allows this`;
    }
  }
}

function exemptionSentence(because: Exemption, name: string, end: Endpoint): string {
  switch (because) {
    case "itself":
      return "what a pod sends to itself is never refused";
    case "own node":
      return `the node of ${name} always reaches it`;
    case "neighbour discovery":
      return "ARP and neighbour discovery are never refused";
    case "no subject":
      if (end.t === "pod" && end.pod.hostNetwork)
        return `${name} is on its node's network, which policies do not isolate`;
      if (end.t === "pod") return `${name} has finished, and policies do not know it any more`;
      return `${name} is no pod, and policies isolate pods alone`;
  }
}

const maxNamed = 4;

/** `a`, `a and b`, `a, b, c, d and 3 more`. */
export function listText(words: readonly string[]): string {
  const distinct = [...new Set(words)];
  const shown = distinct.slice(0, distinct.length > maxNamed + 1 ? maxNamed : maxNamed + 1);
  const rest = distinct.length - shown.length;
  const all = rest === 0 ? shown : [...shown, `${rest} more`];
  return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
}

/** Why, in as few words as tell it: only the ends that refuse, or what allows it. */
export function reasonText({ allowed, egress, ingress }: Explanation): string {
  const saying = (of: readonly ExplainedSide[]): string => of.map(({ says }) => says).join("; ");
  const sides = [egress, ingress];
  if (!allowed) return saying(sides.filter(({ t }) => t === "denied"));
  const [allowing, open] = [sides.filter(({ t }) => t === "allowed"), sides.filter(({ t }) => t === "open")];
  if (open.length === 2) return "no policy isolates either of them for it";
  return saying(allowing) || saying(ingress.exempt === "own node" ? [ingress] : open) || saying([egress]);
}
