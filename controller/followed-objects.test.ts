import { afterEach, expect, test } from "vitest";
import { noTrust } from "../shared/access/mod.ts";
import { ApiClient } from "../shared/kubernetes/mod.ts";
import { createLogger } from "../shared/log.ts";
import { type Play, ScriptedTransport } from "../test/fakes/kubernetes/scripted-transport.ts";
import { eventually } from "../test/support/eventually.ts";
import { FollowedObjects } from "./followed-objects.ts";

const pod = (name: string) => ({
  metadata: { namespace: "x", name, uid: `uid-${name}`, resourceVersion: "5", labels: { app: name } },
  spec: { nodeName: "n1" },
  status: { phase: "Running", podIPs: [{ ip: "10.0.0.1" }] },
});
const policy = (name: string, namespace = "x") => ({
  metadata: { namespace, name, uid: `uid-${name}`, resourceVersion: "5" },
  spec: { podSelector: {}, policyTypes: ["Ingress"] },
});
const namespace = (name: string) => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion: "5", labels: { team: name } },
});
const trust = {
  metadata: { namespace: "kube-system", name: "extension-apiserver-authentication", resourceVersion: "5" },
  data: { "client-ca-file": "PEM" },
};
const event = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;

type Plural = "pods" | "networkpolicies" | "namespaces" | "configmaps";

/** An API server with these objects, on whose watches these events come. */
class World {
  readonly lists: Record<Plural, readonly object[]>;
  readonly events: Partial<Record<Plural, readonly string[]>>;
  /** A kind that it does not list. */
  refused: Plural | undefined;
  readonly said: string[] = [];
  readonly logged: string[] = [];
  readonly transport = new ScriptedTransport(({ path }) => this.#answer(path));
  readonly objects: FollowedObjects;

  constructor(lists: Partial<World["lists"]>, events: World["events"] = {}, refused?: Plural) {
    this.lists = { pods: [], networkpolicies: [], namespaces: [], configmaps: [], ...lists };
    this.events = events;
    this.refused = refused;
    const credentials = { authorization: async () => undefined, renew: async () => false };
    const access = { server: "https://s", tls: async () => ({}), credentials };
    this.objects = new FollowedObjects(
      new ApiClient(access, { transport: this.transport }),
      createLogger("info", (line) => this.logged.push(JSON.parse(line).message)),
      { changed: () => this.said.push("changed"), trustChanged: () => this.said.push("trust") },
    );
  }

  #answer(path: string): Play {
    const plural = (["pods", "networkpolicies", "namespaces", "configmaps"] as const).find((each) =>
      path.split("?")[0]?.endsWith(`/${each}`),
    );
    if (plural === undefined || plural === this.refused) return { t: "answer", status: 403, body: {} };
    if (!path.includes("watch=true"))
      return { t: "answer", body: { metadata: { resourceVersion: "5" }, items: this.lists[plural] } };
    return { t: "stream", pieces: this.events[plural] ?? [], ending: "go on" };
  }
}

let world: World;
afterEach(() => world.objects[Symbol.asyncDispose]());

test("what the API server has is computed, complete once all kinds are there", async () => {
  world = new World({
    pods: [pod("a"), pod("b")],
    networkpolicies: [policy("p"), policy("q", "y")],
    namespaces: [namespace("x")],
    configmaps: [trust],
  });
  const { objects } = world;
  await objects.complete;
  expect(objects.computation.size).toMatchObject({ pods: 2, policies: 2 });
  const { cluster, inputs } = objects;
  expect([cluster.namespaceLabels("x"), cluster.namespaceLabels("y")]).toEqual([{ team: "x" }, undefined]);
  expect(["x", "y", "z"].map((each) => [...cluster.policiesIn(each)].map(({ name }) => name))).toEqual([
    ["p"],
    ["q"],
    [],
  ]);
  expect([...inputs.pods].map(({ name }) => name)).toEqual(["a", "b"]);
  expect([[...inputs.namespaces].length, [...inputs.policies].length]).toEqual([1, 2]);
  await eventually(() => objects.trust.clientCa === "PEM", "the authorities of clients");
  expect(world.said.toSorted()).toEqual(["changed", "changed", "changed", "trust"]);
  expect(world.transport.asked.find((path) => path.includes("configmaps"))).toContain(
    "/namespaces/kube-system/configmaps?",
  );
  expect(decodeURIComponent(world.transport.asked.find((path) => path.includes("configmaps")) ?? "")).toContain(
    "metadata.name=extension-apiserver-authentication",
  );
});

test("what has gone is computed no more", async () => {
  world = new World(
    { pods: [pod("a"), pod("b")], networkpolicies: [policy("p")], namespaces: [namespace("x"), namespace("y")] },
    {
      pods: [event("DELETED", pod("a"))],
      networkpolicies: [event("DELETED", policy("p"))],
      namespaces: [event("DELETED", namespace("x"))],
    },
  );
  const { objects } = world;
  await eventually(() => world.said.length === 6, "a word of each change");
  const { computation, cluster } = objects;
  expect(computation.size).toMatchObject({ pods: 1, policies: 0 });
  expect([computation.pod("x/a"), computation.pod("x/b")?.name, objects.trust]).toEqual([undefined, "b", noTrust]);
  expect(["x", "y"].map((name) => cluster.namespaceLabels(name))).toEqual([undefined, { team: "y" }]);
  expect(computation.onNode("n1").pods.map(({ name }) => name)).toEqual(["b"]);
});

test.each(["pods", "networkpolicies", "namespaces"] as const)(
  "nothing is complete while the %s cannot be listed, which is said once",
  async (refused) => {
    world = new World({}, {}, refused);
    const { objects, logged } = world;
    let isComplete = false;
    void objects.complete.then(() => {
      isComplete = true;
    });
    await eventually(() => logged.length > 0, "the word of it");
    await eventually(
      () => world.transport.asked.filter((path) => path.includes(refused)).length > 1,
      "another attempt",
    );
    expect([isComplete, logged]).toEqual([false, [`the ${refused} of the cluster cannot be followed`]]);
    world.refused = undefined;
    await objects.complete;
  },
);
