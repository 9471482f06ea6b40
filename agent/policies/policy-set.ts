import type { Pod } from "../../shared/cni/types.ts";
import type { GroupKind, PolicyEvent } from "./events.ts";
import type { KnownPolicy } from "./known-policy.ts";
import { type Member, podKey } from "./members.ts";
import { PodGroup } from "./pod-group.ts";

/** Policies, groups and computed pods: ten times what the largest clusters need on a node. */
const maxObjects = 500_000;
/** Of all groups together: ten times the pods of the largest clusters, in three groups each. */
const maxMembers = 3_000_000;

/** What the groups of one kind are, and which policies name them. */
class Groups {
  readonly all = new Map<string, PodGroup>();
  /** Uids of policies, by the names of groups, also of groups that have not come. */
  readonly users = new Map<string, Set<string>>();

  link(uid: string, names: readonly string[]): void {
    for (const name of names) {
      const there = this.users.get(name);
      if (there === undefined) this.users.set(name, new Set([uid]));
      else there.add(uid);
    }
  }

  unlink(uid: string, names: readonly string[]): void {
    for (const name of names) {
      const there = this.users.get(name);
      there?.delete(uid);
      if (there?.size === 0) this.users.delete(name);
    }
  }
}

const addressGroupsOf = ({ rules }: Pick<KnownPolicy, "rules">): readonly string[] =>
  rules.flatMap(({ groups }) => groups);

/** The policies of a node with all that they name, as a controller tells it, event by event. */
export class PolicySet {
  readonly policies = new Map<string, KnownPolicy>();
  readonly #groups: Readonly<Record<GroupKind, Groups>> = { targets: new Groups(), addresses: new Groups() };
  /** AppliedToGroups that have left the node while policies still name them: no pod here is in them. */
  readonly left = new Set<string>();
  /** Uids, by `namespace/name`. */
  readonly computed = new Map<string, string>();
  /** Policies and pods about which something else has to be said since they were taken. */
  readonly touched = { policies: new Set<string>(), pods: new Set<string>() };
  #members = 0;

  group(kind: GroupKind, name: string): PodGroup | undefined {
    return this.#groups[kind].all.get(name);
  }

  groups(kind: GroupKind): Iterable<PodGroup> {
    return this.#groups[kind].all.values();
  }

  /** Uids of the policies that name the group. */
  users(kind: GroupKind, name: string): Iterable<string> {
    return this.#groups[kind].users.get(name) ?? [];
  }

  /** Whether a group of its targets has not come, so that nobody knows whom it isolates. */
  isWaiting({ appliedTo }: KnownPolicy): boolean {
    return appliedTo.some((name) => this.group("targets", name) === undefined && !this.left.has(name));
  }

  /** @throws {Error} where it does not fit to what came before, or is too much; then it changes nothing */
  apply(event: PolicyEvent): void {
    switch (event.t) {
      case "policy":
        this.#putPolicy(event.policy);
        break;
      case "policy gone":
        this.#dropPolicy(event.uid);
        break;
      case "group":
        this.#putGroup(event.kind, event.name, event.members);
        break;
      case "group changed":
        this.#changeGroup(event);
        break;
      case "group gone":
        this.#dropGroup(event.kind, event.name);
        break;
      case "computed":
        this.#require(1, 0);
        this.#setComputed(event.pod, event.pod.uid);
        break;
      case "computed gone":
        // A successor of the same name may have come already.
        if (this.computed.get(podKey(event.pod)) === event.pod.uid) this.#setComputed(event.pod, undefined);
    }
  }

  /** Goes on with the groups and policies of an earlier set where they are the same, so that what follows from them is. */
  adopt(earlier: PolicySet): void {
    for (const kind of ["targets", "addresses"] as const)
      for (const { name, members } of [...this.groups(kind)]) {
        const known = earlier.group(kind, name);
        if (known === undefined) continue;
        known.replace([...members.values()]);
        this.#groups[kind].all.set(name, known);
      }
    for (const uid of [...earlier.policies.keys(), ...this.policies.keys()]) this.touched.policies.add(uid);
    for (const key of [...earlier.computed.keys(), ...this.computed.keys()]) this.touched.pods.add(key);
  }

  get size(): number {
    return this.policies.size + this.#groups.targets.all.size + this.#groups.addresses.all.size + this.computed.size;
  }

  #require(objects: number, members: number): void {
    if (this.size + objects > maxObjects) throw new Error(`more than ${maxObjects} policies, groups and pods`);
    if (this.#members + members > maxMembers) throw new Error(`more than ${maxMembers} members of groups`);
  }

  #setComputed(pod: Pod, uid: string | undefined): void {
    if (uid === undefined) this.computed.delete(podKey(pod));
    else this.computed.set(podKey(pod), uid);
    this.touched.pods.add(podKey(pod));
  }

  #putPolicy(policy: KnownPolicy): void {
    const { uid } = policy.name;
    const before = this.policies.get(uid);
    if (before === undefined) this.#require(1, 0);
    this.policies.set(uid, policy);
    this.#groups.targets.link(uid, policy.appliedTo);
    this.#groups.addresses.link(uid, addressGroupsOf(policy));
    if (before !== undefined) this.#unlink(before, policy);
    this.touched.policies.add(uid);
  }

  #dropPolicy(uid: string): void {
    const before = this.policies.get(uid);
    if (before === undefined) return;
    this.policies.delete(uid);
    this.#unlink(before, { appliedTo: [], rules: [] });
    this.touched.policies.add(uid);
  }

  /** @param now what the policy says instead */
  #unlink({ name: { uid }, ...before }: KnownPolicy, now: Pick<KnownPolicy, "appliedTo" | "rules">): void {
    const [targets, addresses] = [new Set(now.appliedTo), new Set(addressGroupsOf(now))];
    this.#groups.targets.unlink(
      uid,
      before.appliedTo.filter((name) => !targets.has(name)),
    );
    this.#groups.addresses.unlink(
      uid,
      addressGroupsOf(before).filter((name) => !addresses.has(name)),
    );
    for (const name of before.appliedTo) if (!this.#groups.targets.users.has(name)) this.left.delete(name);
  }

  #putGroup(kind: GroupKind, name: string, members: readonly Member[]): void {
    const there = this.group(kind, name);
    this.#require(there === undefined ? 1 : 0, members.length - (there?.members.size ?? 0));
    this.#change(kind, name, () => {
      if (there === undefined) this.#groups[kind].all.set(name, new PodGroup(name, members));
      else there.replace(members);
    });
  }

  #changeGroup({ kind, name, added, removed }: PolicyEvent & { readonly t: "group changed" }): void {
    const there = this.group(kind, name);
    if (there === undefined) throw new Error(`a group "${name}" changes that has not come`);
    this.#require(0, added.length);
    this.#change(kind, name, () => there.change(added, removed));
  }

  #dropGroup(kind: GroupKind, name: string): void {
    const there = this.group(kind, name);
    if (there === undefined) return;
    this.#members -= there.members.size;
    this.#groups[kind].all.delete(name);
    if (kind === "targets" && this.#groups.targets.users.has(name)) this.left.add(name);
    this.#touchUsers(kind, name);
  }

  #change(kind: GroupKind, name: string, change: () => void): void {
    const before = this.group(kind, name)?.members.size ?? 0;
    change();
    this.#members += (this.group(kind, name)?.members.size ?? 0) - before;
    if (kind === "targets") this.left.delete(name);
    this.#touchUsers(kind, name);
  }

  #touchUsers(kind: GroupKind, name: string): void {
    for (const uid of this.users(kind, name)) this.touched.policies.add(uid);
  }
}
