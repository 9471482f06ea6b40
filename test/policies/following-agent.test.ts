import { expect, test } from "vitest";
import { readEvent } from "../../agent/policies/events.ts";
import { NodePolicies } from "../../agent/policies/node-policies.ts";
import { PolicySet } from "../../agent/policies/policy-set.ts";
import { RuleStore } from "../../agent/policies/rule-store.ts";
import type { PolicyComputation } from "../../controller/policy/mod.ts";
import { ApiClient, type ClusterAccess, Connection } from "../../shared/kubernetes/mod.ts";
import type { ApiRequest, Transport } from "../../shared/kubernetes/transport.ts";
import { createLogger } from "../../shared/log.ts";
import { PolicyEnforcementInMemory } from "../fakes/policy-enforcement.ts";
import { RandomObjects } from "../fakes/random-cluster.ts";
import { eventually } from "../support/eventually.ts";
import { random } from "../support/random.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { seed } from "../support/seed.ts";
import { happen, Objects } from "./random-events.ts";
import { ServedPolicies } from "./served-policies.ts";
import { textOf, wholeState } from "./told-node.ts";

const node = "n0";

/** A controller that has Antrea's API only. */
class WithoutOurs implements Transport {
  readonly #inner: Connection;

  constructor(access: ClusterAccess) {
    this.#inner = new Connection(access, {});
  }

  request(request: ApiRequest, signal: AbortSignal): ReturnType<Transport["request"]> {
    const path = request.path.replace("controlplane.pipette.io", "nobody.has.this");
    return this.#inner.request({ ...request, path }, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inner[Symbol.asyncDispose]();
  }
}

/** Sandboxes of pods by name alone, as old runtimes give them. */
const leased = ["red", "green", "blue"].flatMap((namespace) =>
  Array.from({ length: 8 }, (_, slot) => {
    const pod = { namespace, name: `pod-${slot}`, uid: "" };
    return { owner: { network: "pods", sandboxId: `${namespace}-${slot}`, ifname: "eth0" }, pod };
  }),
);

function fromNothing(computation: PolicyComputation, tellsPods: boolean): unknown {
  const set = new PolicySet();
  const state = computation.onNode(node);
  for (const { type, kind, raw } of wholeState(state, tellsPods ? state.pods : []))
    set.apply(readEvent(type, kind, raw));
  const store = new RuleStore();
  for (const { owner, pod } of leased) store.attach(owner, pod);
  store.replace(set, tellsPods);
  return textOf(store.take());
}

test.each([
  ["its own controller on one watch", true],
  ["Antrea's API on three", false],
])("whatever happens, an agent that follows %s has in force what was computed for it", async (_, tellsPods) => {
  await using served = await ServedPolicies.start();
  using directory = scratchDir();
  const { computation } = served;
  const enforcement = new PolicyEnforcementInMemory();
  const access: ClusterAccess = {
    server: served.url,
    tls: () => Promise.resolve({ ca: served.ca }),
    credentials: { authorization: async () => `Bearer node-${node}`, renew: async () => false },
  };
  const start = async (): Promise<NodePolicies> => {
    const policies = new NodePolicies({
      ...{ node, dataDir: directory.path, waitMs: 0, enforcement },
      connect: async () => new ApiClient(access, tellsPods ? {} : { transport: new WithoutOurs(access) }),
      logger: createLogger("error", () => undefined),
      times: { answerMs: 10_000, silenceMs: 10_000, watchMs: 60_000, retryFirstMs: 5, retryMostMs: 20 },
    });
    await policies.prepare(leased);
    await policies.begin(leased.map(({ owner }) => owner));
    return policies;
  };
  let policies = await start();
  const next = random(seed * 65_537);
  const draw = new RandomObjects(next);
  const objects = new Objects();
  let rules = 0;
  for (let i = 0; i < 150; i++) {
    for (let more = next(8); more >= 0; more--) happen(objects, computation, draw, i);
    served.changed();
    if (next(2) === 0) await Bun.sleep(0);
    if (i % 15 > 0) continue;
    const expected = fromNothing(computation, tellsPods);
    await eventually(() => Bun.deepEquals(textOf(enforcement.inForce), expected), "what was computed").catch(
      (caught) => {
        expect(textOf(enforcement.inForce)).toEqual(expected);
        throw caught;
      },
    );
    rules += enforcement.inForce.rules.size;
    if (next(3) > 0) continue;
    await policies[Symbol.asyncDispose]();
    policies = await start();
  }
  expect(rules).toBeGreaterThan(20);
  await policies[Symbol.asyncDispose]();
});
