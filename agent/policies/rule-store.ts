import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner, Pod } from "../../shared/cni/types.ts";
import type { Direction } from "../../shared/policy/mod.ts";
import type { Isolation, NodePolicies, PodRule } from "../datapath/policies.ts";
import type { PolicyEvent } from "./events.ts";
import type { KnownPolicy } from "./known-policy.ts";
import { podKey } from "./members.ts";
import type { PodGroup } from "./pod-group.ts";
import { rulesOf, type Target } from "./policy-rules.ts";
import { PolicySet } from "./policy-set.ts";

/**
 * Whose an attachment is. `none`: of no pod of Kubernetes, which policies do not concern. `unknown`: nobody remembers,
 * so it stays closed.
 */
export type PodOf = Pod | "none" | "unknown";

interface Attachment {
  readonly owner: Owner;
  readonly pod: PodOf;
}

const bothDirections: readonly Direction[] = ["ingress", "egress"];

/**
 * What the node is to enforce: the controller's policies for the attachments that there are. A pod about which the
 * controller has not said all is closed. Objects that say the same as before are the same objects.
 */
export class RuleStore {
  #set = new PolicySet();
  /** Whether the controller says which pods are computed; `undefined` before its first full set. */
  #tellsPods: boolean | undefined;
  /** Where it does not: attachments whose pods count as computed all the same. By owner's key. */
  readonly #assumed = new Set<string>();
  readonly #attachments = new Map<string, Attachment>();
  /** By policies' uids. */
  readonly #rules = new Map<string, ReadonlyMap<string, PodRule>>();
  #isolated: ReadonlyMap<string, Isolation> = new Map();

  get set(): PolicySet {
    return this.#set;
  }

  get tellsPods(): boolean | undefined {
    return this.#tellsPods;
  }

  get attachments(): Iterable<Attachment> {
    return this.#attachments.values();
  }

  /**
   * Takes a full set in place of all that was known.
   * @param tellsPods whether it names the pods that are computed; else those here count as such
   */
  replace(set: PolicySet, tellsPods: boolean): void {
    set.adopt(this.#set);
    this.#set = set;
    this.#tellsPods = tellsPods;
    if (!tellsPods) for (const key of this.#attachments.keys()) this.#assumed.add(key);
    this.#touchAll();
  }

  /** @throws {Error} where the event does not fit to what is known */
  apply(event: PolicyEvent): void {
    this.#set.apply(event);
  }

  podOf(owner: Owner): PodOf | undefined {
    return this.#attachments.get(ownerKey(owner))?.pod;
  }

  attach(owner: Owner, pod: PodOf): void {
    this.#attachments.set(ownerKey(owner), { owner, pod });
    this.#touch(pod);
  }

  detach(owner: Owner): void {
    const pod = this.podOf(owner);
    this.#attachments.delete(ownerKey(owner));
    this.#assumed.delete(ownerKey(owner));
    if (pod !== undefined) this.#touch(pod);
  }

  /** Where the controller does not say which pods are computed: takes this one for computed. */
  assume(owner: Owner): void {
    const pod = this.podOf(owner);
    if (pod === undefined) return;
    this.#assumed.add(ownerKey(owner));
    this.#touch(pod);
  }

  /** Whether all is known that its policies need. */
  isKnown(owner: Owner): boolean {
    const attachment = this.#attachments.get(ownerKey(owner));
    return attachment !== undefined && this.#isKnown(attachment);
  }

  /** What is to be enforced now. */
  take(): NodePolicies {
    const groupsOf = this.#groupsByPod();
    const { policies, pods } = this.#set.touched;
    for (const pod of pods)
      for (const { name } of groupsOf.get(pod) ?? [])
        for (const uid of this.#set.users("targets", name)) policies.add(uid);
    const attached = Map.groupBy(this.#attachments.values(), ({ pod }) => (typeof pod === "string" ? "" : podKey(pod)));
    for (const uid of policies) this.#renew(uid, attached);
    policies.clear();
    pods.clear();
    this.#isolated = this.#isolations(groupsOf);
    const rules = new Map([...this.#rules.values()].flatMap((each) => [...each]));
    return { rules, isolated: this.#isolated };
  }

  #renew(uid: string, attached: ReadonlyMap<string, readonly Attachment[]>): void {
    const policy = this.#set.policies.get(uid);
    if (policy === undefined) {
      this.#rules.delete(uid);
      return;
    }
    const targets = new Map<string, Target>();
    for (const name of policy.appliedTo)
      for (const { pod, ports } of this.#set.group("targets", name)?.members.values() ?? [])
        for (const attachment of attached.get(pod) ?? [])
          if (this.#isKnown(attachment)) targets.set(ownerKey(attachment.owner), { owner: attachment.owner, ports });
    const groupOf = (name: string): PodGroup | undefined => this.#set.group("addresses", name);
    this.#rules.set(uid, rulesOf(policy, [...targets.values()], groupOf, this.#rules.get(uid) ?? new Map()));
  }

  #isolations(groupsOf: ReadonlyMap<string, readonly PodGroup[]>): Map<string, Isolation> {
    const waiting = [...this.#set.policies.values()].filter((policy) => this.#set.isWaiting(policy));
    const isolated = new Map<string, Isolation>();
    for (const [key, attachment] of this.#attachments) {
      const wanted = this.#isolation(attachment, groupsOf, waiting);
      const before = this.#isolated.get(key);
      if (wanted !== undefined)
        isolated.set(key, before !== undefined && isSameIsolation(before, wanted) ? before : wanted);
    }
    return isolated;
  }

  /** @param waiting policies of which nobody knows yet to whom they apply: to any pod of their namespace, then */
  #isolation(
    attachment: Attachment,
    groupsOf: ReadonlyMap<string, readonly PodGroup[]>,
    waiting: readonly KnownPolicy[],
  ): Isolation | undefined {
    const { owner, pod } = attachment;
    if (pod === "none") return undefined;
    if (pod === "unknown" || !this.#isKnown(attachment)) return { owner, directions: bothDirections, by: [] };
    const policies = new Set(waiting.filter(({ name }) => name.namespace === pod.namespace || name.namespace === ""));
    for (const { name } of groupsOf.get(podKey(pod)) ?? [])
      for (const uid of this.#set.users("targets", name)) {
        const policy = this.#set.policies.get(uid);
        if (policy !== undefined && policy.directions.length > 0) policies.add(policy);
      }
    const directions = bothDirections.filter((each) => [...policies].some((of) => of.directions.includes(each)));
    return directions.length === 0 ? undefined : { owner, directions, by: [...policies].map(({ name }) => name) };
  }

  #isKnown({ owner, pod }: Attachment): boolean {
    if (typeof pod === "string") return pod === "none";
    if (this.#tellsPods !== true) return this.#tellsPods === false && this.#assumed.has(ownerKey(owner));
    const uid = this.#set.computed.get(podKey(pod));
    return uid !== undefined && (uid === pod.uid || !isOfApi(pod.uid));
  }

  #groupsByPod(): Map<string, PodGroup[]> {
    const groups = new Map<string, PodGroup[]>();
    for (const group of this.#set.groups("targets"))
      for (const { pod } of group.members.values()) {
        const there = groups.get(pod);
        if (there === undefined) groups.set(pod, [group]);
        else if (there.at(-1) !== group) there.push(group);
      }
    return groups;
  }

  #touch(pod: PodOf): void {
    if (typeof pod !== "string") this.#set.touched.pods.add(podKey(pod));
  }

  #touchAll(): void {
    for (const { pod } of this.#attachments.values()) this.#touch(pod);
  }
}

/**
 * Whether the API server gave the pod its uid. Old runtimes do not say it, and a static pod has a digest of its kubelet's
 * for one: the API server's object of the same name has another.
 */
const isOfApi = (uid: string): boolean => uid !== "" && !/^[0-9a-f]{32}$/.test(uid);

const isSameIsolation = (a: Isolation, b: Isolation): boolean =>
  a.directions.length === b.directions.length &&
  a.directions.every((each) => b.directions.includes(each)) &&
  a.by.length === b.by.length &&
  new Set([...a.by, ...b.by].map(({ uid }) => uid)).size === a.by.length;
