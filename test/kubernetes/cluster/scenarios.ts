import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../../conformance/plugin.ts";
import { describeWith } from "../../support/requires.ts";
import { allWays } from "./all-ways.ts";
import { Cluster } from "./cluster.ts";
import { crowdedPool } from "./crowded-pool.ts";
import { movedPods } from "./moved-pods.ts";
import { partsAnew } from "./parts-anew.ts";
import { type DataPath, installPipette } from "./pipette.ts";
import { replacedAgents } from "./replaced-agents.ts";

/** The first node has what the controller manager gives it, the second a pool of 29 addresses. */
const smallPool = { podCIDR: "10.10.200.0/27", podCIDRs: ["10.10.200.0/27", "fd10:0:0:c8::/64"] };

/** What has to hold in a cluster of two nodes, the second with containerd 2, whose agents have this data path. */
export function describeCluster(title: string, dataPath: DataPath): void {
  const needs = ["root", "kubelet", "cgroup-v1", "containerd", "cni-plugins", "etcd", "openssl", "nft", "gcc"] as const;
  const hasSwitch = dataPath === "ovs";
  describeWith(title, hasSwitch ? [...needs, "openvswitch"] : needs, () => {
    let made: Cluster | undefined;
    const cluster = (): Cluster => {
      if (made === undefined) throw new Error("The cluster has not come up");
      return made;
    };

    beforeAll(async () => {
      compileExecutables();
      made = await Cluster.start(2);
      await made.plane.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "n2" }, spec: smallPool });
      await made.addNode({ containerd: 1, hasSwitch });
      await made.addNode({ containerd: 2, hasSwitch });
    });
    afterAll(() => made?.[Symbol.asyncDispose]());

    test("nodes are ready once the agent has written its configuration, and not before", async () => {
      const { plane, nodes } = cluster();
      expect(await plane.kubectl(conditions("message"))).toContain("cni plugin not initialized");
      await installPipette(cluster(), dataPath);
      await plane.kubectl("wait nodes --all --for=condition=Ready --timeout=60s");
      for (const node of nodes) expect(await node.place.run("ls /etc/cni/net.d")).toBe("10-pipette.conflist");
      await plane.kubectl("-n kube-system rollout status daemonset/pipette-agent --timeout=60s");
    });

    allWays(cluster);
    partsAnew(cluster, hasSwitch);
    movedPods(cluster);
    // Addresses are the same allocator's whatever the data path.
    if (!hasSwitch) crowdedPool(cluster);
    replacedAgents(cluster);

    test("at the end nothing is left of any pod", async () => {
      await cluster().clear();
      for (const node of cluster().nodes) {
        expect(await node.sandboxes()).toEqual([]);
        await node.agrees();
      }
    });
  });
}

const conditions = (field: string): string =>
  `get nodes -o jsonpath={.items[*].status.conditions[?(@.type=="Ready")].${field}}`;
