import { everything, type Labels, type Pod, type Selector } from "../../shared/policy/mod.ts";
import { type GroupSelector, nameOf, textOf } from "./group-selector.ts";
import { LabelIndex, SelectorIndex } from "./label-index.ts";

/** Pods of one namespace with the same labels, such as those of one Deployment: the same groups have all of them. */
class LabelSet {
  readonly namespace: NamespaceEntry;
  readonly key: string;
  readonly labels: Labels;
  readonly pods = new Set<IndexedPod>();
  readonly groups = new Set<Group>();

  constructor(namespace: NamespaceEntry, key: string, labels: Labels) {
    this.namespace = namespace;
    this.key = key;
    this.labels = labels;
  }
}

interface IndexedPod {
  pod: Pod;
  labelSet: LabelSet;
}

/** The namespaces of a group selector, and all groups that have the same. */
class Scope {
  /** Absent: one namespace, by its name. */
  readonly selector: Selector | undefined;
  readonly namespaces = new Set<NamespaceEntry>();
  readonly groups = new SelectorIndex<Group>();

  constructor(selector?: Selector) {
    this.selector = selector;
  }
}

class NamespaceEntry {
  readonly name: string;
  /** Absent: there are pods or groups of it, but the Namespace itself is not known. */
  labels: Labels | undefined;
  readonly own = new Scope();
  /** All that it is in. */
  readonly scopes: Set<Scope>;
  readonly labelSets = new LabelIndex<LabelSet>();
  readonly byLabels = new Map<string, LabelSet>();

  constructor(name: string, everywhere: Scope) {
    this.name = name;
    this.scopes = new Set([this.own, everywhere]);
    for (const scope of this.scopes) scope.namespaces.add(this);
  }

  get isEmpty(): boolean {
    return this.labels === undefined && this.labelSets.isEmpty && this.own.groups.isEmpty;
  }
}

/** The pods that one selector selects. */
export class Group {
  readonly name: string;
  readonly text: string;
  readonly scope: Scope;
  readonly selector: Selector;
  readonly labelSets = new Set<LabelSet>();

  constructor(text: string, scope: Scope, selector: Selector) {
    this.name = nameOf(text);
    this.text = text;
    this.scope = scope;
    this.selector = selector;
  }

  *pods(): Generator<Pod> {
    for (const { pods } of this.labelSets) for (const { pod } of pods) yield pod;
  }
}

/** Told of each pod that joins a group (no `before`), leaves it (no `after`), or changes in it. */
export type Moved = (group: Group, before: Pod | undefined, after: Pod | undefined) => void;

/**
 * Pods, namespaces and the groups of pods that policies name. A change costs what it changes: labels are matched once
 * for all pods that have them, and selectors once for all policies that have them.
 */
export class GroupIndex {
  readonly #moved: Moved;
  readonly #pods = new Map<string, IndexedPod>();
  readonly #byNode = new Map<string, Set<IndexedPod>>();
  readonly #namespaces = new Map<string, NamespaceEntry>();
  readonly #labelled = new LabelIndex<NamespaceEntry>();
  /** Of the selector that selects all namespaces, also those of which nothing else is known. */
  readonly #everywhere = new Scope(everything);
  /** By the selector's text. */
  readonly #scopes = new Map([[everything.text, this.#everywhere]]);
  readonly #selectors = new SelectorIndex<Scope>();
  readonly #groups = new Map<string, Group>();

  constructor(moved: Moved) {
    this.#moved = moved;
  }

  putNamespace(name: string, labels: Labels): void {
    this.#relabel(this.#namespace(name), labels);
  }

  deleteNamespace(name: string): void {
    const entry = this.#namespaces.get(name);
    if (entry === undefined) return;
    this.#relabel(entry, undefined);
    this.#forget(entry);
  }

  /** Answers what the pod was before. */
  putPod(pod: Pod): Pod | undefined {
    const key = podKey(pod);
    const there = this.#pods.get(key);
    const labelSet = this.#labelSet(pod);
    if (there === undefined) {
      const added = { pod, labelSet };
      this.#pods.set(key, added);
      this.#place(added);
      labelSet.pods.add(added);
      for (const group of labelSet.groups) this.#moved(group, undefined, pod);
      return undefined;
    }
    const { pod: before, labelSet: old } = there;
    if (before.node !== pod.node) this.#displace(there);
    there.pod = pod;
    if (before.node !== pod.node) this.#place(there);
    for (const group of old.groups) this.#moved(group, before, labelSet.groups.has(group) ? pod : undefined);
    if (old === labelSet) return before;
    old.pods.delete(there);
    labelSet.pods.add(there);
    there.labelSet = labelSet;
    for (const group of labelSet.groups) if (!old.groups.has(group)) this.#moved(group, undefined, pod);
    this.#drop(old);
    return before;
  }

  /** Answers what it was. */
  deletePod(key: string): Pod | undefined {
    const there = this.#pods.get(key);
    if (there === undefined) return undefined;
    const { pod, labelSet } = there;
    this.#pods.delete(key);
    this.#displace(there);
    labelSet.pods.delete(there);
    for (const group of labelSet.groups) this.#moved(group, pod, undefined);
    this.#drop(labelSet);
    return pod;
  }

  /** The group of a selector, which is looked for where it is not known yet. */
  group(selector: GroupSelector): Group {
    const text = textOf(selector);
    const there = this.#groups.get(text);
    if (there !== undefined) return there;
    const scope = "namespace" in selector ? this.#namespace(selector.namespace).own : this.#scope(selector.namespaces);
    const group = new Group(text, scope, selector.pods ?? everything);
    this.#groups.set(text, group);
    scope.groups.add(group.selector, group);
    for (const { labelSets } of scope.namespaces)
      for (const labelSet of labelSets.matching(group.selector)) {
        group.labelSets.add(labelSet);
        labelSet.groups.add(group);
      }
    return group;
  }

  /** Nobody asks for the group any more. */
  dropGroup(group: Group): void {
    this.#groups.delete(group.text);
    for (const labelSet of group.labelSets) labelSet.groups.delete(group);
    const { scope } = group;
    scope.groups.delete(group.selector, group);
    if (!scope.groups.isEmpty) return;
    if (scope.selector === undefined) for (const namespace of scope.namespaces) this.#forget(namespace);
    else if (scope !== this.#everywhere) this.#dropScope(scope, scope.selector);
  }

  /** The groups that have a pod of this node. */
  groupsOn(node: string): Set<Group> {
    const found = new Set<Group>();
    for (const { labelSet } of this.#byNode.get(node) ?? []) for (const group of labelSet.groups) found.add(group);
    return found;
  }

  pod(key: string): Pod | undefined {
    return this.#pods.get(key)?.pod;
  }

  /** The pods of a node, or those of them in a group. */
  *podsOn(node: string, group?: Group): Generator<Pod> {
    for (const { pod, labelSet } of this.#byNode.get(node) ?? [])
      if (group === undefined || labelSet.groups.has(group)) yield pod;
  }

  get size(): Readonly<Record<"pods" | "namespaces" | "groups", number>> {
    return { pods: this.#pods.size, namespaces: this.#namespaces.size, groups: this.#groups.size };
  }

  #relabel(entry: NamespaceEntry, labels: Labels | undefined): void {
    this.#labelled.delete(entry);
    entry.labels = labels;
    if (labels !== undefined) this.#labelled.add(labels, entry);
    const found = labels === undefined ? [] : this.#selectors.matching(labels);
    const scopes = new Set<Scope>([entry.own, this.#everywhere, ...found]);
    for (const scope of entry.scopes) if (!scopes.has(scope)) this.#leave(entry, scope);
    for (const scope of scopes) if (!entry.scopes.has(scope)) this.#join(entry, scope);
  }

  #join(entry: NamespaceEntry, scope: Scope): void {
    entry.scopes.add(scope);
    scope.namespaces.add(entry);
    for (const labelSet of entry.labelSets.items)
      for (const group of scope.groups.matching(labelSet.labels)) {
        labelSet.groups.add(group);
        group.labelSets.add(labelSet);
        for (const { pod } of labelSet.pods) this.#moved(group, undefined, pod);
      }
  }

  #leave(entry: NamespaceEntry, scope: Scope): void {
    entry.scopes.delete(scope);
    scope.namespaces.delete(entry);
    for (const labelSet of entry.labelSets.items)
      for (const group of labelSet.groups) {
        if (group.scope !== scope) continue;
        labelSet.groups.delete(group);
        group.labelSets.delete(labelSet);
        for (const { pod } of labelSet.pods) this.#moved(group, pod, undefined);
      }
  }

  #namespace(name: string): NamespaceEntry {
    const there = this.#namespaces.get(name);
    if (there !== undefined) return there;
    const made = new NamespaceEntry(name, this.#everywhere);
    this.#namespaces.set(name, made);
    return made;
  }

  #forget(entry: NamespaceEntry): void {
    if (!entry.isEmpty) return;
    this.#namespaces.delete(entry.name);
    this.#everywhere.namespaces.delete(entry);
  }

  #labelSet({ namespace, labels }: Pod): LabelSet {
    const entry = this.#namespace(namespace);
    const key = labelsKey(labels);
    const there = entry.byLabels.get(key);
    if (there !== undefined) return there;
    const made = new LabelSet(entry, key, labels);
    entry.byLabels.set(key, made);
    entry.labelSets.add(labels, made);
    for (const scope of entry.scopes)
      for (const group of scope.groups.matching(labels)) {
        made.groups.add(group);
        group.labelSets.add(made);
      }
    return made;
  }

  #drop(labelSet: LabelSet): void {
    if (labelSet.pods.size > 0) return;
    const { namespace, key, groups } = labelSet;
    for (const group of groups) group.labelSets.delete(labelSet);
    namespace.labelSets.delete(labelSet);
    namespace.byLabels.delete(key);
    this.#forget(namespace);
  }

  #scope(selector: Selector): Scope {
    const there = this.#scopes.get(selector.text);
    if (there !== undefined) return there;
    const made = new Scope(selector);
    this.#scopes.set(selector.text, made);
    this.#selectors.add(selector, made);
    for (const namespace of this.#labelled.matching(selector)) {
      namespace.scopes.add(made);
      made.namespaces.add(namespace);
    }
    return made;
  }

  #dropScope(scope: Scope, selector: Selector): void {
    this.#scopes.delete(selector.text);
    this.#selectors.delete(selector, scope);
    for (const namespace of scope.namespaces) namespace.scopes.delete(scope);
  }

  #place(entry: IndexedPod): void {
    const { node } = entry.pod;
    if (node === undefined) return;
    const there = this.#byNode.get(node);
    if (there === undefined) this.#byNode.set(node, new Set([entry]));
    else there.add(entry);
  }

  #displace(entry: IndexedPod): void {
    const { node } = entry.pod;
    if (node === undefined) return;
    const there = this.#byNode.get(node);
    if (there?.delete(entry) && there.size === 0) this.#byNode.delete(node);
  }
}

export const podKey = ({ namespace, name }: Pick<Pod, "namespace" | "name">): string => `${namespace}/${name}`;

/** Labels have no NUL. */
const labelsKey = (labels: Labels): string =>
  Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key]}`)
    .join("\0");
