import { expect, test } from "vitest";
import { eventually } from "../../support/agent-process.ts";
import type { Cluster } from "./cluster.ts";
import { failedSandboxes, podsOf } from "./cluster-pods.ts";
import { patienceSeconds } from "./control-plane.ts";
import type { KubeletNode } from "./kubelet-node.ts";
import { deployment } from "./workload.ts";

/** Of the second node's /27. */
const poolSize = 29;
const tooMany = poolSize + 3;
/** How often a kubelet asks its runtime whether the network is ready. */
const kubeletAsksSeconds = 5;

interface Conditions {
  readonly items: readonly {
    readonly status: { readonly conditions: readonly { type: string; status: string; lastTransitionTime: string }[] };
  }[];
}

/** More pods than addresses. */
export function crowdedPool(cluster: () => Cluster): void {
  /** When each node has become ready: it shows that none was anything else since. */
  async function readySince(): Promise<readonly string[]> {
    const { items } = await cluster().plane.get<Conditions>("nodes");
    return items
      .flatMap(({ status }) => status.conditions)
      .filter(({ type }) => type === "Ready")
      .map(({ status, lastTransitionTime }) => `${status} since ${lastTransitionTime}`);
  }

  const ready = async (app: string) => (await podsOf(cluster(), app)).filter(({ isReady }) => isReady);

  test("pods that get no address wait, no node turns unready for it, and no pod is evicted", async () => {
    const { plane } = cluster();
    await cluster().clear();
    await askedForStatus(cluster().node("n2"));
    await plane.apply(deployment("beside", { replicas: 2, node: "n1" }));
    await cluster().rolledOut("beside");
    const before = await readySince();
    await plane.apply(deployment("crowd", { replicas: tooMany, node: "n2" }));
    await eventually(async () => (await ready("crowd")).length === poolSize, "all pods that there are addresses for");
    await eventually(async () => (await failedSandboxes(plane, "crowd")).length > 0, "an event that says why");
    const [beside, crowd] = [await ready("beside"), await ready("crowd")];
    // So long that the kubelet has asked twice, and the first pod would have to go.
    await Bun.sleep((2 * kubeletAsksSeconds + patienceSeconds + 1) * 1000);
    expect(await readySince()).toEqual(before);
    expect(await ready("beside")).toEqual(beside);
    expect(new Set((await ready("crowd")).map(({ uid }) => uid))).toEqual(new Set(crowd.map(({ uid }) => uid)));
    expect(await plane.kubectl("get events -A --field-selector reason=TaintManagerEviction -o name")).toBe("");
  });

  test("as soon as there are addresses again the others come, and everything agrees", async () => {
    const { plane } = cluster();
    const waiting = (await podsOf(cluster(), "crowd")).filter(({ isReady }) => !isReady).map(({ name }) => name);
    expect(waiting).toHaveLength(tooMany - poolSize);
    // Of those that have one, and nobody makes others in their place, which might come before the waiting ones.
    const going = (await ready("crowd")).slice(0, tooMany - poolSize).map(({ name }) => name);
    for (const owner of ["deployment crowd", "replicasets -l app=crowd"])
      await plane.kubectl(`delete ${owner} --cascade=orphan`);
    await plane.kubectl(`delete pods ${going.join(" ")} --wait=false`);
    await plane.kubectl(`wait pods ${waiting.join(" ")} --for=condition=Ready --timeout=60s`);
    await plane.kubectl("delete deployment beside --cascade=foreground --timeout=60s");
    await plane.kubectl("delete pods -l app=crowd --timeout=60s");
    await Promise.all(cluster().nodes.map((node) => node.agrees()));
  });
}

/**
 * containerd 2 asks plugins for STATUS only by version 1.1.0, which is offered to it where no other plugin is in the list:
 * the portmap of Debian does not know it.
 */
async function askedForStatus(node: KubeletNode): Promise<void> {
  const versions = async (): Promise<string> =>
    JSON.stringify(JSON.parse(await node.place.run("cat /etc/cni/net.d/10-pipette.conflist")).cniVersions);
  expect(await versions()).toBe('["1.0.0"]');
  await node.place.run("rm /opt/cni/bin/portmap");
  node.expected.push("no-host-ports");
  await node.killAgent();
  await eventually(async () => (await versions()) === '["1.0.0","1.1.0"]', "a configuration with STATUS");
}
