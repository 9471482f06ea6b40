import { expect, test } from "vitest";
import { Conversation } from "../../overlay/lab/conversation.ts";
import type { Cluster } from "./cluster.ts";
import { placeOf, podsOf } from "./cluster-pods.ts";
import type { KubeletNode } from "./kubelet-node.ts";
import { deployment } from "./workload.ts";

/** Every part of a node dies at once and is started anew, while pods talk and others come. */
export function partsAnew(cluster: () => Cluster): void {
  const parts: Record<string, (node: KubeletNode) => Promise<void>> = {
    "the kubelet": async ({ kubelet }) => {
      await kubelet.end("SIGKILL");
      kubelet.start();
    },
    containerd: async ({ containerd }) => {
      await containerd.kill("SIGKILL");
      await containerd.restart();
    },
    "the agent": async (node) => {
      const pid = await node.place.run("pgrep -xf /pipette.agent.--config./etc/pipette/agent.yaml");
      await node.place.run(`kill -KILL ${pid}`);
    },
    "the switch": async ({ vswitch }) => {
      await vswitch?.stop("ovs-vswitchd", "SIGKILL");
      await vswitch?.startSwitch();
    },
    "the switch's database": async ({ vswitch }) => {
      await vswitch?.stop("ovsdb-server", "SIGKILL");
      await vswitch?.startDatabase();
    },
  };

  test.each(Object.keys(parts))("%s is killed and comes back: connections go on, pods come and go", async (name) => {
    const node = cluster().node("n1");
    if (name.startsWith("the switch") && node.vswitch === undefined) return;
    const pods = await podsOf(cluster(), "web");
    const ends = ["n1", "n2"].flatMap((on) => pods.filter((pod) => pod.node === on).slice(0, 2));
    const [one, sibling, far] = await Promise.all(ends.map((pod) => placeOf(cluster(), pod)));
    if (one === undefined || sibling === undefined || far === undefined) throw new Error("There are too few pods");
    using near = await Conversation.start(one.namespace, sibling.namespace, sibling.addresses[0] ?? "");
    using across = await Conversation.start(one.namespace, far.namespace, far.addresses[0] ?? "");
    await cluster().plane.apply(deployment("coming", { replicas: 5, node: "n1" }));
    await parts[name]?.(node);
    await cluster().rolledOut("coming");
    await near.goesOn();
    await across.goesOn();
    await cluster().plane.kubectl("delete deployment coming --cascade=foreground --timeout=60s");
    await Promise.all(cluster().nodes.map((each) => each.agrees()));
    expect([near.ended, across.ended]).toEqual([undefined, undefined]);
  });
}
