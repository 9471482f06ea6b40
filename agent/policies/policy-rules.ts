import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import type { NamedPort, Port } from "../../shared/policy/mod.ts";
import type { PodRule, PolicyName, RulePeers, RulePorts } from "../datapath/policies.ts";
import type { KnownPolicy, KnownRule } from "./known-policy.ts";
import { type PodGroup, type ResolvedPorts, resolve } from "./pod-group.ts";

/** A pod of this node that a policy applies to. */
export interface Target {
  readonly owner: Owner;
  readonly ports: readonly NamedPort[];
}

/** What varies between the rules that one rule of a policy becomes, since names of ports stand for several numbers. */
interface Variant {
  readonly resolved?: ResolvedPorts;
  readonly targets: readonly Target[];
  readonly peers: RulePeers | undefined;
  readonly ports: readonly RulePorts[] | undefined;
}

/**
 * The rules of a policy for these targets.
 * @param groupOf `undefined` for one that has not come: its members are not let in
 * @param before the rules that it had: one that still says the same is answered as the same object
 */
export function rulesOf(
  { name, rules }: KnownPolicy,
  targets: readonly Target[],
  groupOf: (name: string) => PodGroup | undefined,
  before: ReadonlyMap<string, PodRule>,
): Map<string, PodRule> {
  const made = new Map<string, PodRule>();
  if (targets.length === 0) return made;
  for (const rule of rules)
    for (const variant of variantsOf(rule, targets, groupOf)) {
      const wanted = ruleOf(name, rule, variant);
      const known = before.get(wanted.id);
      made.set(wanted.id, known !== undefined && isSameRule(known, wanted) ? known : wanted);
    }
  return made;
}

function ruleOf(policy: PolicyName, { id, direction }: KnownRule, variant: Variant): PodRule {
  const { resolved, targets, peers, ports } = variant;
  return {
    id: resolved === undefined ? id : `${id} ${resolved.text}`,
    policy,
    direction,
    targets: targets.map(({ owner }) => owner),
    ...(peers === undefined ? {} : { peers }),
    ...(ports === undefined ? {} : { ports }),
  };
}

function variantsOf(
  rule: KnownRule,
  targets: readonly Target[],
  groupOf: (name: string) => PodGroup | undefined,
): Variant[] {
  const groups = rule.groups.flatMap((name) => groupOf(name) ?? []);
  const peers = rule.isAnybody ? undefined : { sets: groups.map(({ set }) => set), blocks: rule.blocks };
  if (rule.ports === undefined) return [{ targets, peers, ports: undefined }];
  const numbers = rule.ports.flatMap(numbersOf);
  const names = rule.ports.filter(({ port }) => typeof port === "string");
  // A name that nobody resolves matches nothing.
  const plain: Variant[] = numbers.length === 0 ? [] : [{ targets, peers, ports: numbers }];
  if (names.length === 0) return plain;
  if (rule.direction === "ingress") return [...plain, ...byTargets(names, targets, peers)];
  // A name is the destination pod's to resolve, and an address that was written down has no pod.
  const parts = groups.flatMap((group) => group.parts(names));
  const byPorts = Map.groupBy(parts, ({ resolved }) => resolved.text);
  const named = Array.from(byPorts.values(), (same): Variant[] =>
    same.slice(0, 1).map(({ resolved }) => ({
      resolved,
      targets,
      peers: { sets: same.map(({ set }) => set), blocks: [] },
      ports: resolved.ports,
    })),
  );
  return [...plain, ...named.flat()];
}

function byTargets(names: readonly Port[], targets: readonly Target[], peers: RulePeers | undefined): Variant[] {
  const found = targets.map((target) => ({ target, resolved: resolve(names, target.ports) }));
  const byPorts = Map.groupBy(
    found.filter(({ resolved }) => resolved.text !== ""),
    ({ resolved }) => resolved.text,
  );
  return Array.from(byPorts.values(), (same): Variant[] =>
    same.slice(0, 1).map(({ resolved }) => ({
      resolved,
      targets: same.map(({ target }) => target),
      peers,
      ports: resolved.ports,
    })),
  ).flat();
}

function numbersOf({ protocol, port, endPort }: Port): RulePorts[] {
  if (port === undefined) return [{ protocol }];
  return typeof port === "string"
    ? []
    : [{ protocol, first: port, ...(endPort === undefined ? {} : { last: endPort }) }];
}

/** The id tells policy, direction, blocks and ports. */
function isSameRule(a: PodRule, b: PodRule): boolean {
  return (
    sameList(a.targets, b.targets, (x, y) => x === y || ownerKey(x) === ownerKey(y)) &&
    sameList(a.peers?.sets ?? [], b.peers?.sets ?? [], (x, y) => x === y)
  );
}

const sameList = <T>(a: readonly T[], b: readonly T[], same: (x: T, y: T) => boolean): boolean =>
  a.length === b.length && a.every((each, i) => same(each, b[i] as T));
