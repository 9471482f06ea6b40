import { describe, expect, test } from "vitest";
import { PolicyComputation } from "../../controller/policy/mod.ts";
import { nodeNames, RandomObjects } from "../fakes/random-cluster.ts";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { NodeView } from "./node-view.ts";
import { happen, Objects } from "./random-events.ts";

/** Thousands of comparisons: only a difference is worth being shown. */
function expectSame(actual: unknown, expected: unknown): void {
  if (!Bun.deepEquals(actual, expected)) expect(actual).toEqual(expected);
}

describe("the computation of policies", () => {
  test("whatever happens in whatever order, nodes that follow have what a computation from nothing gives", () => {
    for (let run = 0; run < 12; run++) {
      const next = random(seed * 7919 + run);
      const draw = new RandomObjects(next);
      const shuffle = <T>(list: T[]): T[] =>
        list
          .map((each) => [next(1 << 30), each] as const)
          .sort(([a], [b]) => a - b)
          .map(([, each]) => each);
      const objects = new Objects();
      let computation = new PolicyComputation();
      let views = nodeNames.map((node) => new NodeView(node, computation.onNode(node)));
      for (let look = 0; look < 50; look++) {
        for (let i = next(6); i >= 0; i--) happen(objects, computation, draw, look * 7 + i);
        const changes = computation.take();
        for (const view of views) {
          const state = (): ReturnType<PolicyComputation["onNode"]> => computation.onNode(view.node);
          view.apply(
            changes,
            (name) => state().appliedToGroups.find(({ group }) => group.name === name)?.members ?? [],
          );
          expectSame(view.text, objects.expected(view.node));
          expectSame(new NodeView(view.node, state()).text, view.text);
        }
        expect(Object.values(computation.take()).flat()).toEqual([]);
        if (next(10) > 0) continue;
        // A restart.
        computation = new PolicyComputation();
        objects.tell(computation, { shuffle });
        computation.take();
        const restarted = nodeNames.map((node) => new NodeView(node, computation.onNode(node)));
        for (const [i, { text }] of restarted.entries()) expectSame(text, views[i]?.text);
        views = restarted;
      }
      // All that was ever there is forgotten.
      for (const key of objects.pods.keys()) computation.deletePod(key);
      for (const key of objects.policies.keys()) computation.deletePolicy(key);
      for (const name of objects.namespaces.keys()) computation.deleteNamespace(name);
      computation.take();
      expect(computation.size).toEqual({ pods: 0, namespaces: 0, groups: 0, policies: 0 });
    }
  });
});
