import { expect, test } from "vitest";
import type { Cluster } from "./cluster.ts";
import { failedSandboxes, podsOf } from "./cluster-pods.ts";
import { deployment } from "./workload.ts";

const coming = 25;

/** A new release, as its DaemonSet brings it: the agent gets SIGTERM, there is none for a while, and then a new one. */
export function replacedAgents(cluster: () => Cluster): void {
  test("agents are replaced while 25 pods start: all come, none needs a second try of the kubelet", async () => {
    const { plane } = cluster();
    await plane.kubectl("-n kube-system rollout restart daemonset/pipette-agent");
    await plane.apply(deployment("wave", { replicas: coming, node: "n1" }));
    await cluster().rolledOut("wave");
    await plane.kubectl("-n kube-system rollout status daemonset/pipette-agent --timeout=60s");
    expect(await podsOf(cluster(), "wave")).toHaveLength(coming);
    expect(await failedSandboxes(plane, "wave")).toEqual([]);
    await plane.kubectl("delete deployment wave --cascade=foreground --timeout=60s");
    await Promise.all(cluster().nodes.map((node) => node.agrees()));
  });
}
