import { afterAll, beforeAll, expect, test } from "vitest";
import { type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { type Probe, ProbedPods } from "../policies/probed-pods.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { BridgeNodes } from "./policed-bridges.ts";

describeWith("network policies on kernel bridges", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let pods: ProbedPods;

  function podOf(name: string, number: number): Pod {
    const pod = readPod({
      metadata: { namespace: "x", name, uid: name, labels: { pod: name } },
      spec: { nodeName: "n1" },
      status: { podIPs: [{ ip: `10.77.0.${number}` }, { ip: `fd77::${number}` }] },
    });
    if (pod === undefined) throw new Error("not a pod");
    return pod;
  }
  const all = [podOf("a", 10), podOf("b", 11), podOf("c", 12)];

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-np-"));
    const { nodes } = stack.use(await BridgeNodes.start(sandbox, ["n1"]));
    pods = stack.use(new ProbedPods(nodes));
    for (const pod of all) await pods.attach(sandbox, pod);
  });
  afterAll(() => stack.disposeAsync());

  test("first look", async () => {
    const probes = (["TCP", "UDP", "SCTP"] as const).flatMap((protocol) =>
      ([4, 6] as const).flatMap((family) =>
        ["x/a", "x/b", "x/c"].flatMap((from) =>
          ["x/a", "x/b", "x/c"].flatMap((to) =>
            [80, 81].flatMap((port) => (from === to ? [] : [{ from, to, protocol, port, family }])),
          ),
        ),
      ),
    );
    const before = await pods.send(probes, () => true);
    expect(before.size).toBe(probes.length);
    const policy = readPolicy({
      metadata: { namespace: "x", name: "p", uid: "p" },
      spec: {
        podSelector: { matchLabels: { pod: "b" } },
        policyTypes: ["Ingress"],
        ingress: [{ from: [{ podSelector: { matchLabels: { pod: "a" } } }], ports: [{ port: 80 }] }],
      },
    });
    await pods.enforce({ pods: all, policies: policy === undefined ? [] : [policy], namespaces: new Map([["x", {}]]) });
    const isAllowed = (probe: Probe): boolean =>
      probe.to !== "x/b" || (probe.from === "x/a" && probe.port === 80 && probe.protocol === "TCP");
    const after = await pods.send(probes, isAllowed);
    expect(probes.filter((probe) => after.has(probe) !== isAllowed(probe))).toEqual([]);
    expect(await pods.at("x/a").node.dataPath.policies?.differences()).toEqual([]);
  });
});
