import { afterAll, beforeAll, expect, test } from "vitest";
import type { NodePolicies, PodRule } from "../../agent/datapath/policies.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { type Endpoint, evaluate, isSubject, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { type DrawnCluster, drawCluster, drawQuestion, RandomObjects } from "../fakes/random-cluster.ts";
import { clusterOf, nodePolicies, type World } from "../policies/node-policies.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { PolicyBridge, type TracedPacket } from "./policy-bridge.ts";

const ownerOf = ({ namespace, name }: Pod): Owner => ({
  network: "pods",
  sandboxId: `${namespace}-${name}`,
  ifname: "eth0",
});

/** Some go, and others have rules that say something else, by the same names. */
function otherPolicies({ policies }: DrawnCluster, objects: RandomObjects): DrawnCluster["policies"] {
  return policies.flatMap((policy) => {
    if (objects.chance(15)) return [];
    if (objects.chance(50)) return [policy];
    const { spec } = objects.policy(0, policy.metadata.namespace);
    return [
      { ...policy, spec: { ...spec, podSelector: policy.spec.podSelector, policyTypes: policy.spec.policyTypes } },
    ];
  });
}

/** Everything on one node. */
const worldOf = (cluster: DrawnCluster, pods: readonly Pod[]): World => ({
  pods,
  policies: cluster.policies.flatMap((plain) => readPolicy({ ...plain }) ?? []),
  namespaces: cluster.namespaces,
});

describeWith("random policies on a real switch", ["root", "openvswitch"], () => {
  let bridge: PolicyBridge;
  beforeAll(async () => {
    bridge = await PolicyBridge.start(12);
    await bridge.startAgent();
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  /** A packet that policies have something to say about, and what they say. */
  function draw(cluster: DrawnCluster, pods: ReadonlyMap<unknown, Pod>, next: (bound: number) => number) {
    for (;;) {
      const { source, destination, traffic } = drawQuestion(cluster, next);
      const [from, to] = [source, destination].map((end): Endpoint | undefined => {
        const [ip, pod] = [parseIp(end.ip)!, end.pod && pods.get(end.pod)];
        if (pod === undefined) return { t: "outside", ip };
        return isSubject(pod) ? { t: "pod", pod, ip } : undefined;
      });
      if (from?.ip === undefined || to?.ip === undefined || from.ip.family !== to.ip.family) continue;
      if (formatIp(from.ip) === formatIp(to.ip) || (from.t === "outside" && to.t === "outside")) continue;
      const packet: TracedPacket = {
        from: from.t === "pod" ? ownerOf(from.pod) : undefined,
        source: from.ip,
        destination: to.ip,
        ...traffic,
      };
      const question = { source: from, destination: to, traffic };
      return { packet, question, expectedIn: (world: World) => evaluate(clusterOf(world), question).allowed };
    }
  }

  test("packets pass as the evaluator says, before and after each change, and open connections too", async () => {
    const tally = { passed: 0, stopped: 0, kept: 0, cut: 0 };
    for (let drawn = 0; drawn < 24; drawn++) {
      const next = random(seed * 1_000_003 + drawn);
      const cluster = drawCluster(next);
      const pods = new Map(
        cluster.pods.map((plain) => [plain, readPod({ ...plain, spec: { ...plain.spec, nodeName: "n0" } })!]),
      );
      const here = [...pods.values()].filter((pod) => isSubject(pod) && pod.ips.length > 0);
      await bridge.connect(here.map((pod) => [ownerOf(pod), pod.ips]));
      const before = worldOf(cluster, [...pods.values()]);
      const objects = new RandomObjects(next);
      const changed = { ...cluster, policies: drawn % 3 === 0 ? cluster.policies : otherPolicies(cluster, objects) };
      // Most of the time few pods move, so that sets lose members while the pods that rules are for stay.
      const moving = [10, 0, 40][drawn % 3] ?? 0;
      const moved = [...pods.values()].map((pod) =>
        objects.chance(moving) ? { ...pod, labels: objects.labels() } : pod,
      );
      const after = worldOf(changed, moved);
      const relabelled = new Map([...pods.values()].map((pod, i) => [pod, moved[i] ?? pod]));
      await put(nodePolicies(before, ownerOf));
      if (drawn % 10 === 0) expect(await bridge.policies.differences()).toEqual([]);
      const asked = Array.from({ length: 50 }, () => draw(cluster, pods, next));
      const labels: (string | undefined)[] = [];
      for (const { packet, expectedIn } of asked) {
        const { passes, label, text } = await bridge.trace(packet);
        expect(passes, `${drawn} ${JSON.stringify(packet, bigints)}\n${text}`).toBe(expectedIn(before));
        tally[passes ? "passed" : "stopped"]++;
        labels.push(passes ? label : undefined);
      }
      await put(nodePolicies(after, ownerOf));
      for (const [i, { packet, question }] of asked.entries()) {
        const end = (of: Endpoint): Endpoint =>
          of.t === "pod" ? { ...of, pod: relabelled.get(of.pod) ?? of.pod } : of;
        const expected = evaluate(clusterOf(after), {
          ...question,
          source: end(question.source),
          destination: end(question.destination),
        }).allowed;
        const first = await bridge.trace(packet);
        expect(first.passes, `${drawn} ${JSON.stringify(packet, bigints)}\n${first.text}`).toBe(expected);
        const label = labels[i];
        if (label === undefined) continue;
        const further = await bridge.trace({ ...packet, state: "trk,est", label });
        expect(further.passes, `${drawn} open ${JSON.stringify(packet, bigints)}\n${further.text}`).toBe(expected);
        tally[further.passes ? "kept" : "cut"]++;
      }
    }
    for (const count of Object.values(tally)) expect(count).toBeGreaterThan(20);
  });

  test("while rules that the switch refuses are found, packets pass as before, and then as by the others", async () => {
    const tally = { changed: 0, refused: 0, steps: 0 };
    for (let drawn = 0; drawn < 12; drawn++) {
      const next = random(seed * 2_000_003 + drawn);
      const cluster = drawCluster(next);
      const pods = new Map(
        cluster.pods.map((plain) => [plain, readPod({ ...plain, spec: { ...plain.spec, nodeName: "n0" } })!]),
      );
      const here = [...pods.values()].filter((pod) => isSubject(pod) && pod.ips.length > 0);
      await bridge.connect(here.map((pod) => [ownerOf(pod), pod.ips]));
      const changed = { ...cluster, policies: otherPolicies(cluster, new RandomObjects(next)) };
      const [before, after] = [cluster, changed].map((of) => nodePolicies(worldOf(of, [...pods.values()]), ownerOf));
      if (before === undefined || after === undefined) continue;
      await put(before);
      const fresh = [...after.rules.values()].filter(({ id }) => !before.rules.has(id));
      const [bad] = fresh.slice(next(fresh.length || 1));
      if (bad === undefined) continue;
      const asked = Array.from({ length: 10 }, () => draw(cluster, pods, next).packet);
      const verdicts = () => Promise.all(asked.map(async (packet) => (await bridge.trace(packet)).passes));
      const old = await verdicts();
      const seen: boolean[][] = [];
      bridge.refuses = (keys) => keys.some((key) => key.endsWith(`/${bad.id}`) || key.endsWith(`/${bad.id} tried`));
      bridge.afterBundle = async () => void seen.push(await verdicts());
      try {
        expect(await bridge.policies.enforce(after)).toEqual([{ id: bad.id, reason: "the switch refuses it" }]);
      } finally {
        bridge.refuses = () => false;
        bridge.afterBundle = async () => undefined;
      }
      const last = seen.pop() ?? [];
      for (const step of seen) expect(step, `${drawn}`).toEqual(old);
      const others = new Map([...after.rules].filter(([id]) => id !== bad.id));
      await put({ rules: new Map(), isolated: new Map() });
      await put({ ...after, rules: others });
      expect(last, `${drawn}`).toEqual(await verdicts());
      tally.refused++;
      tally.steps += seen.length;
      tally.changed += last.filter((passes, i) => passes !== old[i]).length;
    }
    for (const [what, count] of Object.entries(tally)) expect(count, what).toBeGreaterThan(1);
  });

  test("a pod that more rules select than one flow of the switch has room for", async () => {
    const owner: Owner = { network: "pods", sandboxId: "busy", ifname: "eth0" };
    const policy = { namespace: "n", name: "p", uid: "u" };
    const client = (i: number): string => `198.18.${i >> 8}.${i & 255}`;
    const rule = (i: number): PodRule => ({
      id: `rule-${i}`,
      policy,
      direction: "ingress",
      targets: [owner],
      peers: { sets: [{ name: `client-${i}`, ips: [parseIp(client(i))!] }], blocks: [] },
      ports: [{ protocol: "TCP", first: 443 }],
    });
    const rules = new Map(Array.from({ length: 8_500 }, (_, i) => [`rule-${i}`, rule(i)]));
    const isolated = new Map([[ownerKey(owner), { owner, directions: ["ingress"] as const, by: [policy] }]]);
    await bridge.connect([[owner, [parseIp("10.0.0.9")!]]]);
    const passes = async (i: number): Promise<boolean> => {
      const [source, destination] = [parseIp(client(i))!, parseIp("10.0.0.9")!];
      return (await bridge.trace({ from: undefined, source, destination, protocol: "TCP", port: 443 })).passes;
    };
    await put({ rules, isolated });
    expect(await Promise.all([0, 3_999, 4_000, 8_499, 8_500].map(passes))).toEqual([true, true, true, true, false]);
    expect(await bridge.policies.differences()).toEqual([]);
    rules.delete("rule-4000");
    await put({ rules: new Map(rules), isolated });
    expect(await Promise.all([3_999, 4_000, 4_001].map(passes))).toEqual([true, false, true]);
  });

  /** In one bundle, so that there is nothing in between. */
  async function put(wanted: NodePolicies): Promise<void> {
    const bundles = bridge.bundles;
    expect(await bridge.policies.enforce(wanted)).toEqual([]);
    expect(bridge.bundles - bundles).toBeLessThanOrEqual(1);
  }
});

const bigints = (_: string, value: unknown): unknown => (typeof value === "bigint" ? value.toString(16) : value);
