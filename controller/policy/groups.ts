import { isSubject, type Pod, sameIps, samePorts } from "../../shared/policy/mod.ts";
import type { ComputedPolicy } from "./computed-policy.ts";
import type { Group } from "./group-index.ts";
import { ChangedMembers, CountedNodes, type MembersChange, type NodesChange } from "./since-last-look.ts";

/** What happened to an object since the last look. Nodes that entered need all of it, those that left nothing more. */
interface ObjectChange {
  readonly t: "added" | "updated" | "deleted";
  readonly nodes: NodesChange;
}

export interface AddressGroupChange extends ObjectChange {
  readonly group: AddressGroup;
  /** For the nodes that had it before and still do. */
  readonly members: MembersChange;
}

export interface AppliedToGroupChange extends ObjectChange {
  readonly group: AppliedToGroup;
  /** The same, for each node those of its own pods. */
  readonly members: ReadonlyMap<string, MembersChange>;
}

/** What both kinds share: they are new, known, or to be dropped, since policies name them or do not. */
abstract class PublishedGroup {
  readonly group: Group;
  protected readonly changed = new ChangedMembers();
  #isKnown = false;

  constructor(group: Group) {
    this.group = group;
  }

  get name(): string {
    return this.group.name;
  }

  abstract get isUsed(): boolean;

  /** What happened to it; `undefined` for a group that came and went. */
  protected get fate(): ObjectChange["t"] | undefined {
    if (this.isUsed) return this.#isKnown ? "updated" : "added";
    return this.#isKnown ? "deleted" : undefined;
  }

  protected note(before: Pod | undefined, after: Pod | undefined): void {
    // A new group is told as a whole.
    if (this.#isKnown) this.changed.note(before, after);
  }

  settle(): void {
    this.#isKnown = true;
    this.changed.settle();
  }
}

const noMembers: MembersChange = { added: [], removed: [] };

/** A group of pods as peers: those with addresses, for all nodes where a policy names it. */
export class AddressGroup extends PublishedGroup {
  /** Nodes, by the number of AppliedToGroups there whose policies name it. */
  readonly span = new CountedNodes();
  /** The AppliedToGroups whose policies name it. */
  users = 0;

  get isUsed(): boolean {
    return this.users > 0;
  }

  *members(): Generator<Pod> {
    for (const pod of this.group.pods()) if (isPeer(pod)) yield pod;
  }

  /** Answers whether that is a change. */
  moved(before: Pod | undefined, after: Pod | undefined): boolean {
    const [from, to] = [isPeer(before) ? before : undefined, isPeer(after) ? after : undefined];
    if (from === to || (from !== undefined && to !== undefined && isSameAddress(from, to))) return false;
    this.note(from, to);
    return true;
  }

  change(): AddressGroupChange | undefined {
    const t = this.fate;
    if (t === undefined) return undefined;
    const nodes = this.span.change();
    if (t !== "updated") return { t, group: this, nodes, members: noMembers };
    const [added, removed]: [Pod[], Pod[]] = [[], []];
    for (const { before, after } of this.changed.all) {
      if (before !== undefined && after !== undefined && isSameAddress(before, after)) continue;
      // A member is known by its name and addresses: added again, it is replaced.
      if (before !== undefined && (after === undefined || !sameIps(before.ips, after.ips))) removed.push(before);
      if (after !== undefined) added.push(after);
    }
    if (added.length + removed.length + nodes.entered.length + nodes.left.length === 0) return undefined;
    return { t, group: this, nodes, members: { added, removed } };
  }

  override settle(): void {
    super.settle();
    this.span.settle();
  }
}

const isPeer = (pod: Pod | undefined): pod is Pod => pod !== undefined && isSubject(pod) && pod.ips.length > 0;

const isSameAddress = (a: Pod, b: Pod): boolean => sameIps(a.ips, b.ips) && samePorts(a.ports, b.ports);

/** A group of pods that policies apply to: those that have a node, each for its own, before they have an address. */
export class AppliedToGroup extends PublishedGroup {
  /** Nodes, by the number of members there. */
  readonly nodes = new CountedNodes();
  /** The groups that its policies name, by the number of these policies. */
  readonly addressGroups = new Map<AddressGroup, number>();
  readonly policies = new Set<ComputedPolicy>();

  constructor(group: Group) {
    super(group);
    for (const { node } of this.members()) this.nodes.add(node);
  }

  get isUsed(): boolean {
    return this.policies.size > 0;
  }

  *members(): Generator<Target> {
    for (const pod of this.group.pods()) if (isTarget(pod)) yield pod;
  }

  /** Answers which node it came to and which it left, and nothing where no member changed. */
  moved(before: Pod | undefined, after: Pod | undefined): NodeMove | undefined {
    const [from, to] = [isTarget(before) ? before : undefined, isTarget(after) ? after : undefined];
    if (from === to || (from !== undefined && to !== undefined && isSameTarget(from, to))) return undefined;
    this.note(from, to);
    if (from?.node === to?.node) return {};
    const entered = to !== undefined && this.nodes.add(to.node) ? to.node : undefined;
    const left = from !== undefined && this.nodes.delete(from.node) ? from.node : undefined;
    return { entered, left };
  }

  change(): AppliedToGroupChange | undefined {
    const t = this.fate;
    if (t === undefined) return undefined;
    const nodes = t === "deleted" ? { entered: [], left: this.nodes.before() } : this.nodes.change();
    const members = t === "updated" ? this.#membersByNode(nodes) : new Map<string, MembersChange>();
    if (t === "updated" && members.size + nodes.entered.length + nodes.left.length === 0) return undefined;
    return { t, group: this, nodes, members };
  }

  override settle(): void {
    super.settle();
    this.nodes.settle();
  }

  #membersByNode({ entered, left }: NodesChange): Map<string, MembersChange> {
    const told = new Set([...entered, ...left]);
    const byNode = new Map<string, { added: Pod[]; removed: Pod[] }>();
    const on = (node: string): { added: Pod[]; removed: Pod[] } => {
      const there = byNode.get(node) ?? { added: [], removed: [] };
      byNode.set(node, there);
      return there;
    };
    for (const { before, after } of this.changed.all) {
      const [from, to] = [isTarget(before) ? before : undefined, isTarget(after) ? after : undefined];
      if (from !== undefined && to !== undefined && isSameTarget(from, to)) continue;
      if (from !== undefined && from.node !== to?.node && !told.has(from.node)) on(from.node).removed.push(from);
      if (to !== undefined && !told.has(to.node)) on(to.node).added.push(to);
    }
    return byNode;
  }
}

interface NodeMove {
  readonly entered?: string | undefined;
  readonly left?: string | undefined;
}

/** A pod that policies may apply to: it has a node. */
export type Target = Pod & { readonly node: string };

export const isTarget = (pod: Pod | undefined): pod is Target =>
  pod !== undefined && isSubject(pod) && pod.node !== undefined;

const isSameTarget = (a: Target, b: Target): boolean => a.node === b.node && samePorts(a.ports, b.ports);
