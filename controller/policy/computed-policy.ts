import {
  type BlockPeer,
  type Direction,
  everything,
  type NetworkPolicy,
  type Port,
  type Rule,
} from "../../shared/policy/mod.ts";
import { type GroupSelector, groupOf } from "./group-selector.ts";

/** A NetworkPolicy as agents get it: groups by name instead of selectors. */
export interface ComputedPolicy {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly generation: number;
  /** The group of pods that it applies to. */
  readonly appliedTo: string;
  /** At least one of each direction in which it isolates. */
  readonly rules: readonly ComputedRule[];
}

export type ComputedRule =
  | { readonly t: "allow"; readonly direction: Direction; readonly peer: ComputedPeer; readonly ports: readonly Port[] }
  /** Isolates, and allows nothing. */
  | { readonly t: "isolate"; readonly direction: Direction };

export interface ComputedPeer {
  readonly addressGroups: readonly string[];
  readonly blocks: readonly BlockPeer[];
}

interface WithGroups<G> {
  readonly policy: ComputedPolicy;
  readonly appliedTo: G;
  readonly peers: ReadonlySet<G>;
}

/** @param find the group of a selector */
export function computePolicy<G extends { readonly name: string }>(
  source: NetworkPolicy,
  find: (selector: GroupSelector) => G,
): WithGroups<G> {
  const { namespace, name, uid, generation, pods } = source;
  const appliedTo = find({ namespace, pods });
  const peers = new Set<G>();
  const named = (selector: GroupSelector): string => {
    const group = find(selector);
    peers.add(group);
    return group.name;
  };
  const rules = [
    ...rulesIn("ingress", namespace, source.ingress, named),
    ...rulesIn("egress", namespace, source.egress, named),
  ];
  return { policy: { uid, namespace, name, generation, appliedTo: appliedTo.name, rules }, appliedTo, peers };
}

type Named = (selector: GroupSelector) => string;

function rulesIn(
  direction: Direction,
  namespace: string,
  rules: readonly Rule[] | undefined,
  named: Named,
): ComputedRule[] {
  if (rules === undefined) return [];
  const allowing = rules.flatMap(({ peers, ports }): ComputedRule[] =>
    // To agents no ports mean all ports. So a rule of which nothing was understood is left out.
    peers?.length === 0 || ports?.length === 0
      ? []
      : [{ t: "allow", direction, peer: peerOf(direction, namespace, { peers, ports }, named), ports: ports ?? [] }],
  );
  return allowing.length > 0 ? allowing : [{ t: "isolate", direction }];
}

const anywhere: readonly BlockPeer[] = [
  { t: "block", cidr: { ip: { family: 4, value: 0n }, prefix: 0 }, except: [] },
  { t: "block", cidr: { ip: { family: 6, value: 0n }, prefix: 0 }, except: [] },
];

const allPods: GroupSelector = { namespaces: everything };

interface Parts {
  readonly peers: Rule["peers"] | undefined;
  readonly ports: Rule["ports"] | undefined;
}

function peerOf(direction: Direction, namespace: string, { peers, ports }: Parts, named: Named): ComputedPeer {
  if (peers === undefined) {
    // Anybody is two blocks rather than a group that changes with each pod, except where names of ports have to be
    // resolved for each destination.
    const byName = direction === "egress" && (ports ?? []).some(({ port }) => typeof port === "string");
    return { addressGroups: byName ? [named(allPods)] : [], blocks: anywhere };
  }
  const addressGroups = new Set<string>();
  const blocks: BlockPeer[] = [];
  for (const peer of peers)
    if (peer.t === "block") blocks.push(peer);
    else addressGroups.add(named(groupOf(namespace, peer)));
  return { addressGroups: [...addressGroups], blocks };
}
