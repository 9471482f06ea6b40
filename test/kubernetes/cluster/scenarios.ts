import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../../conformance/plugin.ts";
import { describeWith } from "../../support/requires.ts";
import type { ContainerdVersion } from "../assets.ts";
import { allWays } from "./all-ways.ts";
import { Cluster } from "./cluster.ts";
import { crowdedPool } from "./crowded-pool.ts";
import { movedPods } from "./moved-pods.ts";
import { partsAnew } from "./parts-anew.ts";
import { type DataPath, forTests, installPipette } from "./pipette.ts";
import { replacedAgents } from "./replaced-agents.ts";

/** Pools of 29 addresses, by the nodes' names; others have what the controller manager gives them. */
const smallPools = {
  n2: { podCIDR: "10.10.200.0/27", podCIDRs: ["10.10.200.0/27", "fd10:0:0:c8::/64"] },
  n3: { podCIDR: "10.10.201.0/27", podCIDRs: ["10.10.201.0/27", "fd10:0:0:c9::/64"] },
};

/**
 * What has to hold in a cluster whose agents have this data path.
 * @param runtimes the containerd of each of its nodes
 */
export function describeCluster(title: string, dataPath: DataPath, runtimes: readonly ContainerdVersion[]): void {
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
      made = await Cluster.start(runtimes.length);
      const pools = Object.entries(smallPools).slice(0, runtimes.length - 1);
      for (const [name, spec] of pools)
        await made.plane.apply({ apiVersion: "v1", kind: "Node", metadata: { name }, spec });
      for (const containerd of runtimes) await made.addNode({ containerd, hasSwitch });
    });
    afterAll(() => made?.[Symbol.asyncDispose]());

    test("nodes are ready once the agent has written its configuration, and not before", async () => {
      const { plane, nodes } = cluster();
      expect(await plane.kubectl(conditions("message"))).toContain("cni plugin not initialized");
      await installPipette(cluster(), { dataPath, config: forTests });
      await plane.kubectl("wait nodes --all --for=condition=Ready --timeout=60s");
      const versions = "get nodes -o jsonpath={.items[*].status.nodeInfo.containerRuntimeVersion}";
      for (const [i, version] of (await plane.kubectl(versions)).split(" ").entries())
        expect(version).toMatch(new RegExp(`^containerd://v?${runtimes[i]}\\.`));
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
