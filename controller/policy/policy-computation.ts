import type { Namespace, NetworkPolicy, Pod } from "../../shared/policy/mod.ts";
import { type ComputedPolicy, computePolicy } from "./computed-policy.ts";
import { type Group, GroupIndex } from "./group-index.ts";
import {
  AddressGroup,
  type AddressGroupChange,
  AppliedToGroup,
  type AppliedToGroupChange,
  isTarget,
  type Target,
} from "./groups.ts";
import { ChangedMembers, type NodesChange } from "./since-last-look.ts";

export interface PolicyChange {
  readonly t: "added" | "updated" | "deleted";
  /** Where it was deleted: as it was. */
  readonly policy: ComputedPolicy;
  /** Whether nodes that had it before get it anew. */
  readonly isRewritten: boolean;
  readonly nodes: NodesChange;
  /** All where it is: as it is whenever it is asked. */
  readonly span: Iterable<string> & Pick<Set<string>, "has">;
}

/** A pod of a node became known (no `before`), is forgotten (no `after`), or is another one, or on another node, by now. */
export interface PodChange {
  readonly before: Target | undefined;
  readonly after: Target | undefined;
}

/** In no order: who follows one kind does not hear of the others. */
export interface Changes {
  readonly policies: readonly PolicyChange[];
  readonly appliedToGroups: readonly AppliedToGroupChange[];
  readonly addressGroups: readonly AddressGroupChange[];
  readonly pods: readonly PodChange[];
}

/** What one node needs. */
export interface NodeState {
  readonly policies: readonly ComputedPolicy[];
  /** With their members there. */
  readonly appliedToGroups: readonly { readonly group: AppliedToGroup; readonly members: readonly Pod[] }[];
  readonly addressGroups: readonly AddressGroup[];
  /** All that policies may apply to, whether any does or not. */
  readonly pods: readonly Pod[];
}

interface KnownPolicy {
  readonly computed: ComputedPolicy;
  readonly appliedTo: AppliedToGroup;
  readonly addressGroups: readonly AddressGroup[];
}

interface PolicyBefore {
  readonly key: string;
  readonly was: KnownPolicy | undefined;
}

/**
 * What every node needs of all NetworkPolicies, Pods and Namespaces. Events may come in any order, and any number of them
 * before a look at what changed: the state is a function of the objects alone, so that each replica comes to the same.
 */
export class PolicyComputation {
  readonly #index = new GroupIndex((group, before, after) => this.#moved(group, before, after));
  /** By namespace and name. */
  readonly #policies = new Map<string, KnownPolicy>();
  readonly #appliedTo = new Map<Group, AppliedToGroup>();
  readonly #addresses = new Map<Group, AddressGroup>();
  /** The policies that changed since the last look, by uid. */
  readonly #changedPolicies = new Map<string, PolicyBefore>();
  readonly #changedAppliedTo = new Set<AppliedToGroup>();
  readonly #changedAddresses = new Set<AddressGroup>();
  readonly #changedPods = new ChangedMembers();

  putNamespace({ name, labels }: Namespace): void {
    this.#index.putNamespace(name, labels);
  }

  deleteNamespace(name: string): void {
    this.#index.deleteNamespace(name);
  }

  putPod(pod: Pod): void {
    this.#changedPods.note(this.#index.putPod(pod), pod);
  }

  /** @param key `namespace/name` */
  deletePod(key: string): void {
    this.#changedPods.note(this.#index.deletePod(key), undefined);
  }

  putPolicy(source: NetworkPolicy): void {
    const key = `${source.namespace}/${source.name}`;
    const before = this.#policies.get(key);
    const { policy, appliedTo, peers } = computePolicy(source, (selector) => this.#index.group(selector));
    const known: KnownPolicy = {
      computed: policy,
      appliedTo: this.#appliedToGroup(appliedTo),
      addressGroups: [...peers].map((group) => this.#addressGroup(group)),
    };
    if (before !== undefined) this.#remember(before.computed.uid, key, before);
    this.#remember(policy.uid, key, undefined);
    this.#policies.set(key, known);
    this.#link(known);
    if (before !== undefined) this.#unlink(before);
  }

  /** @param key `namespace/name` */
  deletePolicy(key: string): void {
    const before = this.#policies.get(key);
    if (before === undefined) return;
    this.#remember(before.computed.uid, key, before);
    this.#policies.delete(key);
    this.#unlink(before);
  }

  /** What changed since the last look. */
  take(): Changes {
    const changes = {
      policies: this.#policyChanges(),
      appliedToGroups: [...this.#changedAppliedTo].flatMap((group) => group.change() ?? []),
      addressGroups: [...this.#changedAddresses].flatMap((group) => group.change() ?? []),
      pods: this.#podChanges(),
    };
    this.#changedPolicies.clear();
    for (const group of this.#changedAppliedTo) group.settle();
    for (const group of this.#changedAddresses) group.settle();
    this.#dropUnused();
    this.#changedAppliedTo.clear();
    this.#changedAddresses.clear();
    this.#changedPods.settle();
    return changes;
  }

  /** All that a node needs. Asked right after a look, it is what the changes of the next one go on from. */
  onNode(node: string): NodeState {
    const appliedToGroups = [...this.#index.groupsOn(node)]
      .flatMap((group) => this.#appliedTo.get(group) ?? [])
      .filter(({ nodes }) => nodes.has(node));
    return {
      policies: appliedToGroups.flatMap(({ policies }) => [...policies]),
      appliedToGroups: appliedToGroups.map((group) => ({ group, members: this.targetsOn(node, group) })),
      addressGroups: [...new Set(appliedToGroups.flatMap(({ addressGroups }) => [...addressGroups.keys()]))],
      pods: [...this.#index.podsOn(node)].filter(isTarget),
    };
  }

  /** All that any node needs: as for one node, with the members of all. */
  everywhere(): NodeState {
    return {
      policies: [...this.#policies.values()].map(({ computed }) => computed),
      appliedToGroups: [...this.#appliedTo.values()].map((group) => ({ group, members: [...group.members()] })),
      addressGroups: [...this.#addresses.values()],
      pods: [],
    };
  }

  targetsOn(node: string, { group }: AppliedToGroup): Pod[] {
    return [...this.#index.podsOn(node, group)].filter(isTarget);
  }

  /** @param key `namespace/name` */
  pod(key: string): Pod | undefined {
    return this.#index.pod(key);
  }

  /** How much there is of what. */
  get size(): Readonly<Record<"pods" | "namespaces" | "groups" | "policies", number>> {
    return { ...this.#index.size, policies: this.#policies.size };
  }

  #moved(group: Group, before: Pod | undefined, after: Pod | undefined): void {
    const addresses = this.#addresses.get(group);
    if (addresses?.moved(before, after) === true) this.#changedAddresses.add(addresses);
    const appliedTo = this.#appliedTo.get(group);
    const moved = appliedTo?.moved(before, after);
    if (appliedTo === undefined || moved === undefined) return;
    this.#changedAppliedTo.add(appliedTo);
    const { entered, left } = moved;
    if (entered === undefined && left === undefined) return;
    for (const peers of appliedTo.addressGroups.keys()) {
      if (entered !== undefined) peers.span.add(entered);
      if (left !== undefined) peers.span.delete(left);
      this.#changedAddresses.add(peers);
    }
  }

  #appliedToGroup(group: Group): AppliedToGroup {
    const there = this.#appliedTo.get(group);
    if (there !== undefined) return there;
    const made = new AppliedToGroup(group);
    this.#appliedTo.set(group, made);
    return made;
  }

  #addressGroup(group: Group): AddressGroup {
    const there = this.#addresses.get(group);
    if (there !== undefined) return there;
    const made = new AddressGroup(group);
    this.#addresses.set(group, made);
    return made;
  }

  #link({ computed, appliedTo, addressGroups }: KnownPolicy): void {
    appliedTo.policies.add(computed);
    this.#changedAppliedTo.add(appliedTo);
    for (const peers of addressGroups) {
      const count = appliedTo.addressGroups.get(peers) ?? 0;
      appliedTo.addressGroups.set(peers, count + 1);
      if (count > 0) continue;
      peers.users++;
      for (const node of appliedTo.nodes) peers.span.add(node);
      this.#changedAddresses.add(peers);
    }
  }

  #unlink({ computed, appliedTo, addressGroups }: KnownPolicy): void {
    appliedTo.policies.delete(computed);
    this.#changedAppliedTo.add(appliedTo);
    for (const peers of addressGroups) {
      const count = appliedTo.addressGroups.get(peers) ?? 0;
      if (count > 1) {
        appliedTo.addressGroups.set(peers, count - 1);
        continue;
      }
      appliedTo.addressGroups.delete(peers);
      peers.users--;
      for (const node of appliedTo.nodes) peers.span.delete(node);
      this.#changedAddresses.add(peers);
    }
  }

  #remember(uid: string, key: string, was: KnownPolicy | undefined): void {
    if (!this.#changedPolicies.has(uid)) this.#changedPolicies.set(uid, { key, was });
  }

  #policyChanges(): PolicyChange[] {
    const changes: PolicyChange[] = [];
    for (const [uid, { key, was }] of this.#changedPolicies) {
      const there = this.#policies.get(key);
      const change = changeOf(was, there?.computed.uid === uid ? there : undefined);
      if (change !== undefined) changes.push(change);
    }
    for (const { nodes: changed, policies } of this.#changedAppliedTo) {
      const nodes = changed.change();
      if (!isChange(nodes)) continue;
      for (const policy of policies)
        if (!this.#changedPolicies.has(policy.uid))
          changes.push({ t: "updated", policy, isRewritten: false, nodes, span: changed });
    }
    return changes;
  }

  #podChanges(): PodChange[] {
    const changes: PodChange[] = [];
    for (const change of this.#changedPods.all) {
      const [before, after] = [targetOf(change.before), targetOf(change.after)];
      if (before?.node !== after?.node || before?.uid !== after?.uid) changes.push({ before, after });
    }
    return changes;
  }

  #dropUnused(): void {
    const unused = new Set<Group>();
    for (const each of this.#changedAppliedTo)
      if (!each.isUsed && this.#appliedTo.delete(each.group)) unused.add(each.group);
    for (const each of this.#changedAddresses)
      if (!each.isUsed && this.#addresses.delete(each.group)) unused.add(each.group);
    for (const group of unused)
      if (!this.#appliedTo.has(group) && !this.#addresses.has(group)) this.#index.dropGroup(group);
  }
}

function changeOf(was: KnownPolicy | undefined, now: KnownPolicy | undefined): PolicyChange | undefined {
  if (was === undefined) {
    if (now === undefined) return undefined;
    const nodes = { entered: [...now.appliedTo.nodes], left: [] };
    return { t: "added", policy: now.computed, isRewritten: false, nodes, span: now.appliedTo.nodes };
  }
  const before = was.appliedTo.nodes.before();
  if (now === undefined)
    return {
      t: "deleted",
      policy: was.computed,
      isRewritten: false,
      nodes: { entered: [], left: before },
      span: nowhere,
    };
  const here = new Set(before);
  const nodes = {
    entered: [...now.appliedTo.nodes].filter((node) => !here.has(node)),
    left: before.filter((node) => !now.appliedTo.nodes.has(node)),
  };
  const isRewritten = !Bun.deepEquals(was.computed, now.computed);
  if (!isRewritten && !isChange(nodes)) return undefined;
  return { t: "updated", policy: now.computed, isRewritten, nodes, span: now.appliedTo.nodes };
}

const targetOf = (pod: Pod | undefined): Target | undefined => (isTarget(pod) ? pod : undefined);

const nowhere: PolicyChange["span"] = new Set();

const isChange = ({ entered, left }: NodesChange): boolean => entered.length + left.length > 0;
