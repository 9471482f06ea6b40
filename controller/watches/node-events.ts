import {
  type AddressGroup,
  type AppliedToGroup,
  addressMember,
  type Changes,
  groupMessage,
  type MembersChange,
  metadataOf,
  type PolicyComputation,
  patchMessage,
  podMessage,
  policyMessage,
  policyReference,
  targetMember,
} from "../policy/mod.ts";
import type { AddedEvents } from "./added-events.ts";
import {
  addressGroupKind,
  addressGroupPatchKind,
  appliedToGroupKind,
  appliedToGroupPatchKind,
  networkPolicyKind,
  podMarkKind,
} from "./api-kind.ts";
import { WatchEvent } from "./watch-event.ts";

/**
 * What nodes hear of one look's changes, in an order in which nothing opens in between: groups come and grow, then
 * policies come and change, and only then anything goes. Marks of pods say last that all of it was told.
 */
class NodeEvents {
  readonly given: WatchEvent[] = [];
  readonly policies: WatchEvent[] = [];
  readonly taken: WatchEvent[] = [];
  readonly marks: WatchEvent[] = [];

  get inOrder(): readonly WatchEvent[] {
    return [...this.given, ...this.policies, ...this.taken, ...this.marks];
  }
}

/** The events of the nodes that are watched for. An event that several nodes hear is one object. */
export class EventCollection {
  readonly #computation: PolicyComputation;
  readonly #added: AddedEvents;
  readonly #isWatched: (node: string) => boolean;
  readonly #byNode = new Map<string, NodeEvents>();

  /** @param isWatched the nodes of which events are wanted */
  constructor(computation: PolicyComputation, added: AddedEvents, isWatched: (node: string) => boolean) {
    this.#computation = computation;
    this.#added = added;
    this.#isWatched = isWatched;
  }

  collect(changes: Changes): ReadonlyMap<string, { readonly inOrder: readonly WatchEvent[] }> {
    for (const change of changes.addressGroups) this.#addressGroup(change);
    for (const change of changes.appliedToGroups) this.#appliedToGroup(change);
    for (const change of changes.policies) this.#policy(change);
    for (const change of changes.pods) this.#pod(change);
    return this.#byNode;
  }

  #addressGroup({ group, nodes: { entered, left }, members }: Changes["addressGroups"][number]): void {
    this.#each(entered, "given", () => this.#added.addressGroup(group));
    this.#each(left, "taken", () => deletedAddressGroup(group));
    if (members.added.length + members.removed.length === 0) return;
    const isNew = new Set(entered);
    const staying = [...group.span].filter((node) => !isNew.has(node));
    const patch = (part: MembersChange): WatchEvent =>
      WatchEvent.of("MODIFIED", "addressgroups", addressGroupPatchKind, () =>
        patchMessage(group.name, part, addressMember),
      );
    const { added, removed } = members;
    if (added.length > 0) this.#each(staying, "given", () => patch({ added, removed: [] }));
    if (removed.length > 0) this.#each(staying, "taken", () => patch({ added: [], removed }));
  }

  #appliedToGroup({ group, nodes: { entered, left }, members }: Changes["appliedToGroups"][number]): void {
    for (const node of entered)
      this.#to(node)?.given.push(addedAppliedToGroup(group, this.#computation.targetsOn(node, group)));
    this.#each(left, "taken", () => deletedAppliedToGroup(group));
    for (const [node, { added, removed }] of members) {
      const patch = (part: MembersChange): WatchEvent =>
        WatchEvent.of("MODIFIED", "appliedtogroups", appliedToGroupPatchKind, () =>
          patchMessage(group.name, part, targetMember),
        );
      if (added.length > 0) this.#to(node)?.given.push(patch({ added, removed: [] }));
      if (removed.length > 0) this.#to(node)?.taken.push(patch({ added: [], removed }));
    }
  }

  #policy({ policy, isRewritten, nodes: { entered, left }, span }: Changes["policies"][number]): void {
    this.#each(entered, "policies", () => this.#added.policy(policy));
    this.#each(left, "taken", () =>
      WatchEvent.of("DELETED", "networkpolicies", networkPolicyKind, () => policyReference(policy)),
    );
    if (!isRewritten) return;
    const isNew = new Set(entered);
    const staying = [...span].filter((node) => !isNew.has(node));
    this.#each(staying, "policies", () =>
      WatchEvent.of("MODIFIED", "networkpolicies", networkPolicyKind, () => policyMessage(policy)),
    );
  }

  #pod({ before, after }: Changes["pods"][number]): void {
    if (before !== undefined)
      this.#to(before.node)?.taken.push(WatchEvent.of("DELETED", undefined, podMarkKind, () => podMessage(before)));
    if (after !== undefined) this.#to(after.node)?.marks.push(podMark(after));
  }

  /** The same event for all of these nodes, made if one of them is watched for. */
  #each(nodes: Iterable<string>, phase: "given" | "policies" | "taken", make: () => WatchEvent): void {
    let event: WatchEvent | undefined;
    for (const node of nodes) {
      const to = this.#to(node);
      if (to === undefined) continue;
      event ??= make();
      to[phase].push(event);
    }
  }

  #to(node: string): NodeEvents | undefined {
    const there = this.#byNode.get(node);
    if (there !== undefined || !this.#isWatched(node)) return there;
    const made = new NodeEvents();
    this.#byNode.set(node, made);
    return made;
  }
}

/** All that a node needs, for one that begins to follow. */
export function wholeState(computation: PolicyComputation, added: AddedEvents, node: string): readonly WatchEvent[] {
  const { policies, appliedToGroups, addressGroups, pods } = computation.onNode(node);
  return [
    ...addressGroups.map((group) => added.addressGroup(group)),
    ...appliedToGroups.map(({ group, members }) => addedAppliedToGroup(group, members)),
    ...policies.map((policy) => added.policy(policy)),
    ...pods.map(podMark),
  ];
}

const addedAppliedToGroup = ({ name }: AppliedToGroup, members: Parameters<typeof groupMessage>[1]): WatchEvent =>
  WatchEvent.of("ADDED", "appliedtogroups", appliedToGroupKind, () => groupMessage(name, members, targetMember));

const podMark = (pod: Parameters<typeof podMessage>[0]): WatchEvent =>
  WatchEvent.of("ADDED", undefined, podMarkKind, () => podMessage(pod));

const deletedAddressGroup = ({ name }: AddressGroup): WatchEvent =>
  WatchEvent.of("DELETED", "addressgroups", addressGroupKind, () => ({ metadata: metadataOf(name), members: [] }));

const deletedAppliedToGroup = ({ name }: AppliedToGroup): WatchEvent =>
  WatchEvent.of("DELETED", "appliedtogroups", appliedToGroupKind, () => ({ metadata: metadataOf(name), members: [] }));
