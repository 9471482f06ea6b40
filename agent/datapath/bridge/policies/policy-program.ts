import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import type { Ip } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import {
  countIn,
  drop,
  type Element,
  elementOf,
  ipBytes,
  jumpTo,
  type PacketSet,
  type Rule,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import type { NodePolicies, PodRule, RefusedRule } from "../../policies.ts";
import { rulesOf } from "../frame-fields.ts";
import {
  bridgeChains,
  closedPorts,
  judgingChains,
  noRedirects,
  type PodMaps,
  type PolicedBridge,
  podMaps,
} from "./node-chains.ts";
import { type FilledChain, type FilledSet, type PacketProgram, placeOf } from "./packet-program.ts";
import { type RuleChain, type RuleChains, shortName } from "./rule-chains.ts";

/** A pod as packets know it. */
export interface PolicedPod {
  readonly owner: Owner;
  readonly ips: readonly Ip[];
  /** Index of its port. */
  readonly port: number;
  /** Name of the bridge that the port belongs to. */
  readonly bridge: string;
}

/** The counter of what a pod's isolation refuses. */
export const deniedCounter = (owner: Owner, direction: Direction): string =>
  shortName(direction === "egress" ? "denied-from" : "denied-to", ownerKey(owner));

/** Collects what is to stand, under the places where it does. */
class Draft {
  readonly sets = new Map<string, FilledSet>();
  readonly counters = new Set<string>();
  readonly chains = new Map<string, FilledChain>();

  addSet(set: FilledSet): void {
    this.sets.set(placeOf(set.set), set);
  }

  addChain(chain: FilledChain): void {
    this.chains.set(placeOf(chain), chain);
  }

  addElement(set: PacketSet, element: Element): void {
    const elements = this.sets.get(placeOf(set))?.elements as Map<string, Element> | undefined;
    elements?.set(element.key.toHex(), element);
  }
}

/**
 * What is to stand in nftables: for each rule a chain that accepts what it allows, for each isolated pod and direction a
 * chain that goes through the pod's rules and drops the rest, and maps from pods' addresses to their chains.
 */
export function policyProgram(
  table: Table,
  wanted: NodePolicies,
  pods: Iterable<PolicedPod>,
  bridges: readonly PolicedBridge[],
  ruleChains: RuleChains,
): { readonly program: PacketProgram; readonly refused: readonly RefusedRule[] } {
  const draft = new Draft();
  const maps = podMaps(table);
  for (const set of [...Object.values(maps)].flatMap((map) => [map[4], map[6]]))
    draft.addSet({ set, elements: new Map() });
  for (const chain of [...judgingChains(table, maps), noRedirects(table, bridges)]) draft.addChain(chain);
  for (const bridge of bridges) {
    const closed = closedPorts(bridge.name);
    for (const set of Object.values(closed)) draft.addSet({ set, elements: new Map() });
    for (const chain of bridgeChains(bridge, closed)) draft.addChain(chain);
  }
  const refused = new Map<string, RefusedRule>();
  const rulesFor = rulesByPod(wanted);
  for (const pod of pods) {
    const isolation = wanted.isolated.get(ownerKey(pod.owner));
    for (const direction of isolation?.directions ?? []) {
      const own: RuleChain[] = [];
      for (const rule of rulesFor[direction].get(ownerKey(pod.owner)) ?? []) {
        const made = ruleChains.of(rule);
        if ("reason" in made) refused.set(made.id, made);
        else own.push(made);
      }
      isolate(draft, table, maps, pod, direction, own);
    }
  }
  return { program: { table, ...draft }, refused: [...refused.values()] };
}

type RulesByPod = Readonly<Record<Direction, ReadonlyMap<string, readonly PodRule[]>>>;

function rulesByPod({ rules, isolated }: NodePolicies): RulesByPod {
  const found = { ingress: new Map<string, PodRule[]>(), egress: new Map<string, PodRule[]>() };
  for (const rule of rules.values())
    for (const target of rule.targets) {
      const key = ownerKey(target);
      if (!isolated.has(key)) continue;
      const before = found[rule.direction].get(key);
      if (before === undefined) found[rule.direction].set(key, [rule]);
      else before.push(rule);
    }
  return found;
}

function isolate(
  draft: Draft,
  table: Table,
  maps: PodMaps,
  { owner, ips, port, bridge }: PolicedPod,
  direction: Direction,
  rules: readonly RuleChain[],
): void {
  const side = direction === "egress" ? "from" : "to";
  const name = shortName(side, ownerKey(owner));
  const denied = deniedCounter(owner, direction);
  draft.counters.add(denied);
  for (const { chain, sets, counters } of rules) {
    draft.addChain(chain);
    for (const set of sets) draft.addSet(set);
    draft.counters.add(counters.passed).add(counters.opened);
  }
  const make = rulesOf(table);
  draft.addChain({
    table,
    name,
    text: rules.map(({ chain }) => chain.name).join(),
    rules: (): readonly Rule[] => [
      ...rules.map(({ chain }) => make(name, "a rule", [jumpTo(chain.name)])),
      make(name, `${owner.sandboxId.slice(0, 64)} is isolated`, [countIn(denied), drop]),
    ],
  });
  for (const ip of ips) {
    const { family } = ip;
    draft.addElement(maps[side][family], { ...elementOf(maps[side][family], ipBytes(ip)), chain: name });
    for (const other of ips)
      if (other.family === family)
        draft.addElement(maps.itself[family], elementOf(maps.itself[family], ipBytes(ip), ipBytes(other)));
  }
  const index = new Uint8Array(new Uint32Array([port]).buffer);
  const closed = closedPorts(bridge)[side];
  draft.addElement(closed, elementOf(closed, index));
}
