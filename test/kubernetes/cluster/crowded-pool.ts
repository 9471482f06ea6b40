import { expect, test } from "vitest";
import { eventually } from "../../support/agent-process.ts";
import type { Cluster } from "./cluster.ts";
import { podsOf } from "./cluster-pods.ts";
import { patienceSeconds } from "./control-plane.ts";
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
    await plane.apply(deployment("beside", { replicas: 2, node: "n1" }));
    await cluster().rolledOut("beside");
    const before = await readySince();
    await plane.apply(deployment("crowd", { replicas: tooMany, node: "n2" }));
    await eventually(async () => (await ready("crowd")).length === poolSize, "all pods that there are addresses for");
    await eventually(async () => (await plane.kubectl(failures)) !== "", "an event that says why");
    const [beside, crowd] = [await ready("beside"), await ready("crowd")];
    // Twice the time after which the first would have to go, and as often as it takes a kubelet to hear of it.
    await Bun.sleep((2 * patienceSeconds + 2 * kubeletAsksSeconds) * 1000);
    expect(await readySince()).toEqual(before);
    expect(await ready("beside")).toEqual(beside);
    expect(new Set((await ready("crowd")).map(({ uid }) => uid))).toEqual(new Set(crowd.map(({ uid }) => uid)));
    expect(await plane.kubectl("get events -A --field-selector reason=TaintManagerEviction -o name")).toBe("");
  });

  test("as soon as there are addresses again the others come, and everything agrees", async () => {
    const { plane } = cluster();
    const waiting = (await podsOf(cluster(), "crowd")).filter(({ isReady }) => !isReady).map(({ name }) => name);
    expect(waiting).toHaveLength(tooMany - poolSize);
    await plane.kubectl("annotate pods -l app=crowd controller.kubernetes.io/pod-deletion-cost=0");
    await plane.kubectl(`annotate --overwrite pods ${waiting.join(" ")} controller.kubernetes.io/pod-deletion-cost=9`);
    await plane.kubectl(
      `delete pods ${(await ready("crowd"))
        .slice(0, 3)
        .map(({ name }) => name)
        .join(" ")} --wait=false`,
    );
    await plane.kubectl(`scale deployment crowd --replicas=${poolSize}`);
    await cluster().rolledOut("crowd");
    await plane.kubectl("delete deployment crowd beside --cascade=foreground --timeout=60s");
    await Promise.all(cluster().nodes.map((node) => node.agrees()));
  });
}

const failures = "get events --field-selector reason=FailedCreatePodSandBox -o jsonpath={.items[*].message}";
