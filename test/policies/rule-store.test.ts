import { describe, expect, test } from "vitest";
import type { NodePolicies } from "../../agent/datapath/policies.ts";
import { readEvent } from "../../agent/policies/events.ts";
import { PolicySet } from "../../agent/policies/policy-set.ts";
import { RuleStore } from "../../agent/policies/rule-store.ts";
import { readState, textOf as textOfState } from "../../agent/policies/state-file.ts";
import { PolicyComputation } from "../../controller/policy/mod.ts";
import type { Pod } from "../../shared/policy/mod.ts";
import type { Told } from "../fakes/policy-events.ts";
import { nodeNames, RandomObjects } from "../fakes/random-cluster.ts";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { happen, Objects } from "./random-events.ts";
import { changesFor, computedPod, ownerOf, textOf, wholeState } from "./told-node.ts";

/** An agent's store that follows a controller, with the pods of its node. */
class Follower {
  readonly node: string;
  store = new RuleStore();
  readonly #attached = new Map<string, Pod>();
  readonly #computed = new Map<string, Pod>();

  constructor(node: string, computation: PolicyComputation, objects: Objects) {
    this.node = node;
    this.startOver(computation, objects);
  }

  /** The controller tells all anew. */
  startOver(computation: PolicyComputation, objects: Objects): void {
    const set = new PolicySet();
    const pods = this.#podsOf(objects);
    for (const { type, kind, raw } of wholeState(computation.onNode(this.node), pods))
      set.apply(readEvent(type, kind, raw));
    this.store.replace(set, true);
    this.#computed.clear();
    for (const pod of pods) this.#computed.set(`${pod.namespace}/${pod.name}`, pod);
  }

  follow(changes: ReturnType<PolicyComputation["take"]>, computation: PolicyComputation, objects: Objects): void {
    for (const told of changesFor(this.node, changes, computation.onNode(this.node))) this.#tell(told);
    const pods = new Map(this.#podsOf(objects).map((pod) => [`${pod.namespace}/${pod.name}`, pod]));
    for (const [key, pod] of this.#computed)
      if (!pods.has(key) && this.#computed.delete(key)) this.#tell(computedPod(pod, "DELETED"));
    for (const [key, pod] of pods)
      if (this.#computed.get(key)?.uid !== pod.uid) {
        this.#computed.set(key, pod);
        this.#tell(computedPod(pod));
      }
  }

  /** Sandboxes come before the controller knows of their pods, or after, and go late. */
  moveSandboxes(objects: Objects, draw: RandomObjects): void {
    for (const pod of this.#podsOf(objects))
      if (!pod.hostNetwork && draw.chance(60)) {
        this.#attached.set(ownerOf(pod).sandboxId, pod);
        const { namespace, name, uid } = pod;
        this.store.attach(ownerOf(pod), { namespace, name, uid });
      }
    for (const [key, pod] of this.#attached)
      if (!objects.pods.has(`${pod.namespace}/${pod.name}`) && draw.chance(50)) {
        this.#attached.delete(key);
        this.store.detach(ownerOf(pod));
      }
  }

  /** The agent starts again, with what it wrote and its controller away. */
  restart(): void {
    const { policies, attachments } = readState(textOfState(this.store));
    this.store = new RuleStore();
    for (const { owner, pod } of attachments) this.store.attach(owner, pod);
    if (policies !== undefined) this.store.replace(policies.set, policies.tellsPods);
  }

  /** What a store has that was told the same from nothing. */
  fromNothing(computation: PolicyComputation, objects: Objects): NodePolicies {
    const other = new Follower(this.node, computation, objects);
    for (const pod of this.#attached.values()) other.store.attach(ownerOf(pod), pod);
    return other.store.take();
  }

  #podsOf({ pods }: Objects): Pod[] {
    return [...pods.values()].filter(({ node }) => node === this.node);
  }

  #tell({ type, kind, raw }: Told): void {
    this.store.apply(readEvent(type, kind, raw));
  }
}

/** Rules that say the same as before, and are other objects. */
function needlesslyNew(before: NodePolicies, after: NodePolicies): string[] {
  const same: string[] = [];
  for (const [id, rule] of after.rules) {
    const known = before.rules.get(id);
    if (known !== undefined && known !== rule && Bun.deepEquals(known, rule)) same.push(id);
  }
  return same;
}

describe("an agent's store of rules", () => {
  test("whatever happens in whatever order, it has what one has that was told all at once, in the same objects", () => {
    let rules = 0;
    for (let run = 0; run < 4; run++) {
      const next = random(seed * 104_729 + run);
      const draw = new RandomObjects(next);
      const objects = new Objects();
      const computation = new PolicyComputation();
      computation.take();
      const followers = nodeNames.map((node) => new Follower(node, computation, objects));
      for (let look = 0; look < 40; look++) {
        for (let i = next(6); i >= 0; i--) happen(objects, computation, draw, look * 7 + i);
        const changes = computation.take();
        for (const follower of followers) {
          const before = follower.store.take();
          if (next(2) === 0) follower.moveSandboxes(objects, draw);
          const isRestarted = next(8) === 0;
          if (isRestarted) follower.restart();
          if (next(8) === 0) follower.startOver(computation, objects);
          else follower.follow(changes, computation, objects);
          if (next(2) === 0) follower.moveSandboxes(objects, draw);
          const after = follower.store.take();
          const expected = textOf(follower.fromNothing(computation, objects));
          if (!Bun.deepEquals(textOf(after), expected)) expect(textOf(after)).toEqual(expected);
          if (!isRestarted) expect(needlesslyNew(before, after)).toEqual([]);
          rules += after.rules.size;
        }
      }
    }
    expect(rules).toBeGreaterThan(1000);
  });
});
