import { computePolicy } from "../../controller/policy/computed-policy.ts";
import { type GroupSelector, nameOf, textOf } from "../../controller/policy/group-selector.ts";
import type { PolicyComputation } from "../../controller/policy/mod.ts";
import {
  isSubject,
  type Labels,
  type NetworkPolicy,
  type Pod,
  readPod,
  readPolicy,
  selects,
} from "../../shared/policy/mod.ts";
import type { RandomObjects } from "../fakes/random-cluster.ts";
import { NodeView } from "./node-view.ts";

/** The objects of an API server, by `namespace/name`. */
export class Objects {
  readonly pods = new Map<string, Pod>();
  readonly policies = new Map<string, NetworkPolicy>();
  readonly namespaces = new Map<string, Labels>();

  /** In an order of its own each time, as informers bring them after a start. */
  tell(computation: PolicyComputation, { shuffle }: { shuffle: <T>(list: T[]) => T[] }): void {
    const events = [
      ...[...this.pods.values()].map((pod) => () => computation.putPod(pod)),
      ...[...this.policies.values()].map((policy) => () => computation.putPolicy(policy)),
      ...[...this.namespaces].map(
        ([name, labels]) =>
          () =>
            computation.putNamespace({ name, labels }),
      ),
    ];
    for (const event of shuffle(events)) event();
  }

  /** What a node must have, by going through everything. */
  expected(node: string): unknown {
    const computed = [...this.policies.values()].map((source) =>
      computePolicy(source, (selector) => ({ name: nameOf(textOf(selector)), selector })),
    );
    const here = computed.filter(({ appliedTo }) =>
      this.#members(appliedTo.selector).some((pod) => isSubject(pod) && pod.node === node),
    );
    return new NodeView(node, {
      policies: here.map(({ policy }) => policy),
      appliedToGroups: unique(here.map(({ appliedTo }) => appliedTo)).map((group) => ({
        group: group as never,
        members: this.#members(group.selector).filter((pod) => isSubject(pod) && pod.node === node),
      })),
      addressGroups: unique(here.flatMap(({ peers }) => [...peers])).map(
        ({ name, selector }) =>
          ({
            name,
            members: () => this.#members(selector).filter((pod) => isSubject(pod) && pod.ips.length > 0),
          }) as never,
      ),
      pods: [...this.pods.values()].filter((pod) => isSubject(pod) && pod.node === node),
    }).text;
  }

  #members(selector: GroupSelector): Pod[] {
    return [...this.pods.values()].filter((pod) => {
      if (selector.pods !== undefined && !selects(selector.pods, pod.labels)) return false;
      if ("namespace" in selector) return pod.namespace === selector.namespace;
      const labels = this.namespaces.get(pod.namespace);
      return labels === undefined ? selector.namespaces.text === "" : selects(selector.namespaces, labels);
    });
  }
}

const unique = <T extends { readonly name: string }>(groups: readonly T[]): T[] => [
  ...new Map(groups.map((group) => [group.name, group])).values(),
];

/** One event of the API server: an object comes, changes, is made anew under its name, or goes. */
export function happen(objects: Objects, computation: PolicyComputation, draw: RandomObjects, i: number): void {
  const namespace = draw.namespace();
  const slot = draw.one([0, 1, 2, 3, 4, 5, 6, 7]);
  switch (
    draw.one(["pod", "pod", "pod", "pod gone", "policy", "policy", "policy gone", "namespace", "namespace gone"])
  ) {
    case "pod": {
      // Some change nothing but their labels, some keep their address.
      const known = objects.pods.get(`${namespace}/pod-${slot}`);
      const drawn = readPod({ ...draw.pod(draw.chance(50) ? slot : 8 + (i % 200), namespace, `pod-${slot}`) });
      const pod = known !== undefined && draw.chance(30) ? { ...known, labels: drawn?.labels ?? {} } : drawn;
      if (pod === undefined) return;
      objects.pods.set(`${namespace}/pod-${slot}`, pod);
      computation.putPod(pod);
      return;
    }
    case "pod gone":
      objects.pods.delete(`${namespace}/pod-${slot}`);
      computation.deletePod(`${namespace}/pod-${slot}`);
      return;
    case "policy": {
      const drawn = draw.policy(slot % 5, namespace);
      const uid = draw.chance(20) ? `${drawn.metadata.uid}-${i}` : drawn.metadata.uid;
      const policy = readPolicy({ ...drawn, metadata: { ...drawn.metadata, uid } });
      if (policy === undefined) return;
      objects.policies.set(`${namespace}/${policy.name}`, policy);
      computation.putPolicy(policy);
      return;
    }
    case "policy gone":
      objects.policies.delete(`${namespace}/policy-${slot % 5}`);
      computation.deletePolicy(`${namespace}/policy-${slot % 5}`);
      return;
    case "namespace": {
      const labels = draw.labels();
      objects.namespaces.set(namespace, labels);
      computation.putNamespace({ name: namespace, labels });
      return;
    }
    case "namespace gone":
      objects.namespaces.delete(namespace);
      computation.deleteNamespace(namespace);
  }
}
