import { afterAll, beforeAll, expect, test } from "vitest";
import { evaluate, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { RandomObjects } from "../fakes/random-cluster.ts";
import { clusterOf, type World } from "../policies/node-policies.ts";
import { type Probe, ProbedPods, podKey } from "../policies/probed-pods.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { BridgeNodes } from "./policed-bridges.ts";

const worlds = 12;
const probesPerWorld = 250;

describeWith("random policies on a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  const objects = new RandomObjects(random(seed));
  let pods: ProbedPods;
  let standing: readonly Pod[];

  /** With other labels and ports each time; those that policies draw blocks of. */
  const draw = (): Pod[] =>
    Array.from({ length: 10 }, (_, i) => {
      const namespace = ["red", "green", "blue"][i % 3] ?? "";
      const { metadata, spec } = objects.pod(i, namespace);
      const podIPs = [{ ip: `10.0.${1 + (i >> 2)}.${i & 3}` }, { ip: `fd00::${(i + 4).toString(16)}` }];
      const uid = `${namespace}-${i}`;
      const pod = readPod({
        metadata: { ...metadata, uid },
        spec: { nodeName: "n0", containers: spec.containers },
        status: { phase: "Running", podIPs },
      });
      if (pod === undefined) throw new Error("not a pod");
      return pod;
    });

  beforeAll(async () => {
    const sandbox = stack.use(await NetworkSandbox.enter("pt-nr-"));
    const { nodes } = stack.use(await BridgeNodes.start(sandbox, ["n0"], ["10.0.0.0/16", "fd00::/64"]));
    pods = stack.use(new ProbedPods(nodes));
    standing = draw();
    for (const pod of standing) await pods.attach(sandbox, pod);
  });
  afterAll(() => stack.disposeAsync());

  test("what arrives is what the evaluator says, from one world to the next", async () => {
    let denied = 0;
    for (let i = 0; i < worlds; i++) {
      const world: World = {
        pods: draw(),
        policies: objects.list(8, (j) => readPolicy({ ...objects.policy(j) })).filter((policy) => policy !== undefined),
        namespaces: objects.namespaceLabels(),
      };
      await pods.enforce(world);
      const expected = new Map<Probe, boolean>();
      for (let j = 0; j < probesPerWorld; j++) {
        const [from, to] = [objects.one(world.pods), objects.one(world.pods)];
        if (from === to) continue;
        const protocol = objects.one(["TCP", "UDP", "SCTP"] as const);
        const port = objects.one([53, 79, 80, 80, 81, 8080]);
        const family = objects.one([4, 4, 6] as const);
        const end = (pod: Pod) => {
          const ip = pod.ips.find((each) => each.family === family);
          return { t: "pod", pod, ...(ip === undefined ? {} : { ip }) } as const;
        };
        const question = { source: end(from), destination: end(to), traffic: { protocol, port } };
        const { allowed } = evaluate(clusterOf(world), question);
        if (!allowed) denied++;
        expected.set({ from: podKey(from), to: podKey(to), protocol, port, family }, allowed);
      }
      // The same packet twice would be one connection.
      const probes = [...new Map([...expected.keys()].map((probe) => [JSON.stringify(probe), probe])).values()];
      const arrived = await pods.send(probes, (probe) => expected.get(probe) === true);
      const wrong = probes.filter((probe) => arrived.has(probe) !== expected.get(probe));
      expect(wrong, `world ${i} of seed ${seed}`).toEqual([]);
      expect(await pods.at(podKey(standing[0] as Pod)).node.dataPath.policies?.differences()).toEqual([]);
    }
    expect(denied).toBeGreaterThan((worlds * probesPerWorld) / 10);
    expect(denied).toBeLessThan(worlds * probesPerWorld * 0.9);
  });
});
