import { PolicySet } from "../../../agent/policies/policy-set.ts";
import { RuleStore } from "../../../agent/policies/rule-store.ts";
import { readState, textOf } from "../../../agent/policies/state-file.ts";
import { WatchReader } from "../../../agent/policies/watch-reader.ts";
import { ApiError } from "../../../shared/kubernetes/mod.ts";
import { allows } from "../../fakes/policy-enforcement.ts";
import { addresses, bookmark, computed, frameOf, policy, targets } from "../../fakes/policy-events.ts";
import type { Target } from "../engine/target.ts";
import { frameMutator, nestedMutator, protobufFields, watchFrames } from "../mutate/frames.ts";
import { pieces } from "./http2.ts";
import { requireSentence } from "./words.ts";

const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
const asked = { direction: "ingress", other: { family: 4, value: 0x0a000001n }, protocol: "TCP", port: 81 } as const;

/** What an agent knows already: a pod that lets a client in at one port. */
const known = [
  addresses("clients", "y/c 10.0.0.1"),
  targets("servers", "x/a"),
  policy("p1", "servers", [{ groups: ["clients"], ports: ["TCP/80"] }]),
  computed("x/a"),
].map(frameOf);

/** An agent's store, which hears a watch from its beginning. */
class Agent {
  readonly store = new RuleStore();
  #isComplete = false;

  constructor() {
    this.store.attach(owner, { namespace: "x", name: "a", uid: "x/a" });
    this.hear([...known, frameOf(bookmark())]);
    this.#isComplete = false;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Answers why it hears no more. */
  hear(chunks: Iterable<Uint8Array>): string {
    const set = new PolicySet();
    const reader = new WatchReader("follow the policies", {
      event: (event) => (this.#isComplete ? this.store.apply(event) : set.apply(event)),
      complete: () => {
        this.store.replace(set, true);
        this.#isComplete = true;
      },
    });
    try {
      for (const chunk of chunks) reader.push(chunk);
      return "";
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      requireSentence(caught.message, "the error of a watch");
      return caught.message;
    }
  }
}

export const policies: Target = {
  name: "policies",
  what: "what a controller of network policies says to an agent",
  mutators: [frameMutator(watchFrames), nestedMutator(protobufFields)],
  dictionary: [
    "ADDED",
    "MODIFIED",
    "DELETED",
    "BOOKMARK",
    "ERROR",
    "NetworkPolicy",
    "AddressGroupPatch",
    "ComputedPod",
  ],
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      const [whole, cut] = [new Agent(), new Agent()];
      const errors = [whole.hear([input]), cut.hear(pieces(input))];
      if (errors[0] !== errors[1]) throw new Error(`Cut, it says "${errors[1]}", and else "${errors[0]}"`);
      const [state, same] = [whole.store.take(), cut.store.take()];
      if (!Bun.deepEquals(state, same)) throw new Error("Cut, something else is to be enforced");
      // The half of a set counts for nothing.
      if (!whole.isComplete && allows(state, owner, asked)) throw new Error("It opens a port");
      const again = readState(textOf(whole.store));
      const restarted = new RuleStore();
      for (const { owner: of, pod } of again.attachments) restarted.attach(of, pod);
      if (again.policies !== undefined) restarted.replace(again.policies.set, again.policies.tellsPods);
      const kept = restarted.take();
      if (kept.rules.size !== state.rules.size || kept.isolated.size !== state.isolated.size)
        throw new Error("What was kept is something else");
    },
  }),
};
