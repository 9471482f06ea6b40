import { afterAll, beforeAll, expect, test } from "vitest";
import { packetEnds } from "../../agent/datapath/packet-ends.ts";
import type { Verdict } from "../../agent/datapath/policies.ts";
import { readPod, readPolicy } from "../../shared/policy/mod.ts";
import { ingress, pod as named, ports } from "../fakes/policy-world.ts";
import { nodePolicies } from "../policies/node-policies.ts";
import { ownerOf, type Probe, ProbedPods } from "../policies/probed-pods.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { BridgeNodes } from "./policed-bridges.ts";

const [a, b] = ["a", "b"].map((name, i) => {
  const pod = readPod({
    metadata: { namespace: "x", name, uid: name, labels: { pod: name } },
    spec: { nodeName: "n1" },
    status: { podIPs: [{ ip: `10.77.0.${10 + i}` }, { ip: `fd77::${10 + i}` }] },
  });
  if (pod === undefined) throw new Error("not a pod");
  return pod;
}) as [NonNullable<ReturnType<typeof readPod>>, NonNullable<ReturnType<typeof readPod>>];
/** Pod b takes TCP at port 80 from pod a. */
const policy = readPolicy({
  metadata: { namespace: "x", name: "p", uid: "p" },
  spec: { ...ingress({ from: [named("a")], ...ports({ port: 80 }) }), podSelector: { matchLabels: { pod: "b" } } },
});

describeWith("verdicts of policies on a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let bridges: BridgeNodes;
  let pods: ProbedPods;

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-nv-"));
    bridges = stack.use(await BridgeNodes.start(sandbox, ["n1"]));
    pods = stack.use(new ProbedPods(bridges.nodes));
    for (const pod of [a, b]) await pods.attach(sandbox, pod);
  });
  afterAll(() => stack.disposeAsync());

  test("each connection that rules let through, and refused packets, as many as the kernel is allowed to tell", async () => {
    const wanted = nodePolicies(
      { pods: [a, b], policies: policy === undefined ? [] : [policy], namespaces: new Map([["x", {}]]) },
      ownerOf,
      "n1",
    );
    const [rule] = wanted.rules.values();
    const told: string[] = [];
    const tell = ({ direction, owner, rule, packet }: Verdict): void => {
      const ends = packetEnds(packet);
      const of = `${ends?.source.family} ${ends?.protocol} ${ends?.ports?.destination}`;
      told.push([direction, rule?.id ?? "refused", owner?.sandboxId ?? "nobody", of].join(" "));
    };
    const dataPath = await bridges.reopen("n1", wanted, tell);
    expect(dataPath.policies?.unreported).toBeUndefined();
    expect(await dataPath.policies?.differences()).toEqual([]);
    const probe = (family: 4 | 6, protocol: Probe["protocol"], port: number): Probe => ({
      ...{ from: "x/a", to: "x/b", family, protocol, port },
    });
    const probes = ([4, 6] as const).flatMap((family) => [
      probe(family, "TCP", 80),
      probe(family, "TCP", 81),
      probe(family, "UDP", 80),
    ]);
    await pods.send(probes, ({ protocol, port }) => protocol === "TCP" && port === 80);
    const expected = [4, 6].flatMap((family) => [
      `ingress ${rule?.id} x-b ${family} 6 80`,
      `ingress refused x-b ${family} 6 81`,
      `ingress refused x-b ${family} 17 80`,
    ]);
    await eventually(() => told.length >= expected.length, "the reports");
    expect(told.toSorted()).toEqual(expected.toSorted());
    told.length = 0;
    const many = Array.from({ length: 200 }, () => probe(4, "UDP", 9));
    await pods.send(many, () => false);
    await eventually(() => told.length > 0, "the reports");
    expect(told.length).toBeLessThan(100);
    // Who does not want them any more has no such rules.
    const quiet = await bridges.reopen("n1", wanted);
    expect(await quiet.policies?.differences()).toEqual([]);
    expect(await sandbox.node("nft list ruleset")).not.toContain('comment "reported"');
  });
});
