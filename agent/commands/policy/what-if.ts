import type { Family, Ip } from "../../../shared/net/ip.ts";
import {
  type Cluster,
  type Direction,
  type Endpoint,
  judge,
  type NetworkPolicy,
  type Question,
  selects,
} from "../../../shared/policy/mod.ts";
import type { ClusterView } from "./cluster-view.ts";
import { classesOf, type EndClass, ipsOf, outsideClasses, type PodClass } from "./pod-classes.ts";
import { type PortRange, portRanges, trafficOf } from "./port-ranges.ts";

/** What becomes possible, or impossible, between all pods of two classes. */
export interface Change {
  readonly from: EndClass;
  readonly to: EndClass;
  /** Where it is not the same for both. */
  readonly family?: Family;
  readonly opened: readonly PortRange[];
  readonly closed: readonly PortRange[];
}

export interface WhatIf {
  readonly changes: readonly Change[];
  /** All that there are: for telling which of them are meant together. */
  readonly classes: readonly PodClass[];
}

const directions: readonly Direction[] = ["ingress", "egress"];

/**
 * What other policies would change, for all pairs of pods, and for pods and the world outside. Nodes are left out, and
 * so are pods that are not there yet.
 * @param progress called now and then
 */
export function whatIf(
  before: ClusterView,
  after: ClusterView,
  progress: (done: number, total: number) => void = () => undefined,
): WhatIf {
  const changed = differing(before.policies, after.policies);
  const all = [...new Set([...before.policies, ...after.policies])];
  const classes = classesOf(before.pods, all);
  const families = new Set(classes.flatMap((each) => ipsOf(each).map(({ family }) => family)));
  const namespaces = new Set(changed.map(({ namespace }) => namespace));
  const outside = outsideClasses(
    families,
    all.filter(({ namespace }) => namespaces.has(namespace)),
  );
  const comparison = new Comparison(before, after, all);
  const changes: Change[] = [];
  const seen = new Set<string>();
  const others: readonly EndClass[] = [...classes, ...outside];
  const subjects = directions.flatMap((direction) =>
    classes.flatMap((each, i) => (concerns(changed, direction, each) ? [{ direction, subject: each, i }] : [])),
  );
  for (const [done, { direction, subject, i }] of subjects.entries()) {
    progress(done, subjects.length);
    for (const [j, other] of others.entries()) {
      const [from, to, key] = direction === "egress" ? [subject, other, `${i} ${j}`] : [other, subject, `${j} ${i}`];
      if (seen.has(key)) continue;
      seen.add(key);
      changes.push(...comparison.between(from, to));
    }
  }
  return { changes, classes };
}

/** Policies that are only before, or only after. */
function differing(before: readonly NetworkPolicy[], after: readonly NetworkPolicy[]): readonly NetworkPolicy[] {
  const [was, is] = [new Set(before), new Set(after)];
  return [...before.filter((policy) => !is.has(policy)), ...after.filter((policy) => !was.has(policy))];
}

const concerns = (policies: readonly NetworkPolicy[], direction: Direction, { namespace, pods }: PodClass): boolean =>
  policies.some(
    (policy) =>
      policy.namespace === namespace && policy[direction] !== undefined && selects(policy.pods, pods[0]?.labels ?? {}),
  );

/** Asks the same before and after. */
class Comparison {
  readonly #before: Cluster;
  readonly #after: Cluster;
  readonly #policies: ReadonlyMap<string, readonly NetworkPolicy[]>;
  /** Of a class and a direction: those that isolate it, before or after. */
  readonly #isolating = new Map<string, Map<EndClass, readonly NetworkPolicy[]>>();

  constructor(before: Cluster, after: Cluster, policies: readonly NetworkPolicy[]) {
    this.#before = before;
    this.#after = after;
    this.#policies = Map.groupBy(policies, ({ namespace }) => namespace);
  }

  between(from: EndClass, to: EndClass): Change[] {
    // A pod reaches itself always.
    if (from === to && from.t === "pods" && from.pods.length === 1) return [];
    const ranges = portRanges(
      [...this.#isolatingOf("egress", from), ...this.#isolatingOf("ingress", to)],
      to.t === "pods" ? to.pods[0] : undefined,
    );
    const found = pairsOf(from, to).map(([source, destination]) => ({
      family: source.family,
      ...this.#compare(endAt(from, source, 0), endAt(to, destination, from === to ? 1 : 0), ranges),
    }));
    const changes = found.filter(({ opened, closed }) => opened.length + closed.length > 0);
    const [first] = changes;
    const isSame = changes.length === found.length && changes.every((each) => sameRanges(each, first));
    if (first !== undefined && isSame) {
      const { family: _, ...both } = first;
      return [{ from, to, ...both }];
    }
    return changes.map((each) => ({ from, to, ...each }));
  }

  #compare(
    source: Endpoint,
    destination: Endpoint,
    ranges: readonly PortRange[],
  ): { readonly opened: readonly PortRange[]; readonly closed: readonly PortRange[] } {
    const [opened, closed]: [PortRange[], PortRange[]] = [[], []];
    for (const range of ranges) {
      const question = { source, destination, traffic: trafficOf(range) };
      const [was, is] = [mayReach(this.#before, question), mayReach(this.#after, question)];
      if (was !== is) (is ? opened : closed).push(range);
    }
    return { opened, closed };
  }

  #isolatingOf(direction: Direction, end: EndClass): readonly NetworkPolicy[] {
    if (end.t === "outside") return [];
    const known = this.#isolating.get(direction) ?? new Map<EndClass, readonly NetworkPolicy[]>();
    this.#isolating.set(direction, known);
    const found =
      known.get(end) ??
      (this.#policies.get(end.namespace) ?? []).filter((policy) => concerns([policy], direction, end));
    known.set(end, found);
    return found;
  }
}

const mayReach = (cluster: Cluster, question: Question): boolean =>
  directions.every((direction) => judge(cluster, direction, question).t !== "denied");

/** Addresses of one family. */
const pairsOf = (from: EndClass, to: EndClass): readonly (readonly [Ip, Ip])[] =>
  ipsOf(from).flatMap((source) =>
    ipsOf(to).flatMap((destination) => (source.family === destination.family ? [[source, destination] as const] : [])),
  );

/** @param i which of the pods: two of one class are two */
function endAt(end: EndClass, ip: Ip, i: number): Endpoint {
  const pod = end.t === "pods" ? (end.pods[i] ?? end.pods[0]) : undefined;
  return pod === undefined ? { t: "outside", ip } : { t: "pod", pod, ip };
}

const sameRanges = (a: Pick<Change, "opened" | "closed">, b: typeof a | undefined): boolean =>
  Bun.deepEquals([a.opened, a.closed], [b?.opened, b?.closed]);

/** Pairs of pods; with the world outside each pod counts once. */
export function pairsIn({ from, to }: Pick<Change, "from" | "to">): number {
  const [sources, targets] = [from, to].map((end) => (end.t === "pods" ? end.pods.length : 1)) as [number, number];
  return from === to ? sources * (sources - 1) : sources * targets;
}
