import { expect, test } from "vitest";
import { Conversation } from "../../overlay/lab/conversation.ts";
import type { Cluster } from "./cluster.ts";
import { placeOf, podsOf } from "./cluster-pods.ts";
import type { KubeletNode } from "./kubelet-node.ts";
import { deployment } from "./workload.ts";

type Kill = (node: KubeletNode) => Promise<void>;

const ofSwitch: Record<string, Kill> = {
  "the switch": async ({ vswitch }) => {
    await vswitch?.stop("ovs-vswitchd", "SIGKILL");
    await vswitch?.startSwitch();
  },
  "the switch's database": async ({ vswitch }) => {
    await vswitch?.stop("ovsdb-server", "SIGKILL");
    await vswitch?.startDatabase();
  },
};

/** Every part of a node dies at once and is started anew, while pods talk and others come. @param hasSwitch the nodes have one */
export function partsAnew(cluster: () => Cluster, hasSwitch: boolean): void {
  const parts: Record<string, Kill> = {
    "the kubelet": async ({ kubelet }) => {
      await kubelet.end("SIGKILL");
      kubelet.start();
    },
    containerd: async ({ containerd }) => {
      await containerd.kill("SIGKILL");
      await containerd.restart();
    },
    "the agent": (node) => node.killAgent(),
    ...(hasSwitch ? ofSwitch : {}),
  };

  test.each(Object.entries(parts).map(([name, kill], i) => ({ name, kill, comes: 3 * (i + 1) })))(
    "$name is killed and comes back: connections go on, and pods that are asked for meanwhile come",
    async ({ kill, comes }) => {
      const node = cluster().node("n1");
      const pods = await podsOf(cluster(), "web");
      const ends = ["n1", "n2"].flatMap((on) => pods.filter((pod) => pod.node === on).slice(0, 2));
      const [one, sibling, far] = await Promise.all(ends.map((pod) => placeOf(cluster(), pod)));
      if (one === undefined || sibling === undefined || far === undefined) throw new Error("There are too few pods");
      using near = await Conversation.start(one.namespace, sibling.namespace, sibling.addresses[0] ?? "");
      using across = await Conversation.start(one.namespace, far.namespace, far.addresses[0] ?? "");
      await cluster().plane.apply(deployment("coming", { replicas: comes, node: "n1" }));
      await kill(node);
      await cluster().rolledOut("coming");
      await near.goesOn();
      await across.goesOn();
      expect([near.ended, across.ended]).toEqual([undefined, undefined]);
    },
  );

  test("after all of that everything agrees", async () => {
    await cluster().plane.kubectl("delete deployment coming --cascade=foreground --timeout=60s");
    await Promise.all(cluster().nodes.map((each) => each.agrees()));
  });
}
