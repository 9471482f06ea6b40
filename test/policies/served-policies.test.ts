import { expect, test } from "vitest";
import { addressMember, type PolicyComputation, policyMessage, targetMember } from "../../controller/policy/mod.ts";
import { nodeNames, RandomObjects } from "../fakes/random-cluster.ts";
import { membersOf, stateOf, WatchingNode } from "../fakes/watching-node.ts";
import { eventually } from "../support/eventually.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { happen, Objects } from "./random-events.ts";
import { ServedPolicies } from "./served-policies.ts";

/** What the node has to have. */
function expectedState(computation: PolicyComputation, node: string): unknown {
  const { policies, appliedToGroups, addressGroups, pods } = computation.onNode(node);
  return stateOf(
    policies.map(policyMessage),
    new Map(appliedToGroups.map(({ group, members }) => [group.name, membersOf(members.map(targetMember))])),
    new Map(addressGroups.map((group) => [group.name, membersOf([...group.members()].map(addressMember))])),
    new Map(pods.map(({ namespace, name, uid }) => [`${namespace}/${name}`, uid])),
  );
}

describeWith("policies that are served", ["openssl"], () => {
  test("whatever happens, a node that follows the ordered watch has what was computed for it, and what it names", async () => {
    await using served = await ServedPolicies.start();
    const { computation } = served;
    const next = random(seed * 31);
    const draw = new RandomObjects(next);
    const objects = new Objects();
    const nodes = nodeNames.map((node) => ({ node, following: new WatchingNode(served.url, served.ca, node) }));
    for (let i = 0; i < 400; i++) {
      for (let more = next(8); more >= 0; more--) happen(objects, computation, draw, i);
      served.changed();
      // Some events meet in one turn of the loop, others do not.
      if (next(2) === 0) await Bun.sleep(0);
      if (i % 25 > 0) continue;
      for (const each of nodes) {
        const { node, following } = each;
        await eventually(() => {
          if (following.isOver) throw following.failure;
          return Bun.deepEquals(following.view.state, expectedState(computation, node));
        }, `the state of ${node}`).catch((caught) => {
          expect(following.view.state).toEqual(expectedState(computation, node));
          throw caught;
        });
        if (next(4) > 0) continue;
        await following[Symbol.asyncDispose]();
        each.following = new WatchingNode(served.url, served.ca, node);
      }
    }
    for (const { following } of nodes) {
      expect(following.view.bookmark).toEqual({});
      await following[Symbol.asyncDispose]();
    }
    await eventually(() => served.state?.watches.count === 0, "the end of all watches");
  });
});
