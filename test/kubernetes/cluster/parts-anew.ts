import { expect, test } from "vitest";
import { Conversation } from "../../overlay/lab/conversation.ts";
import { eventually } from "../../support/agent-process.ts";
import type { Cluster } from "./cluster.ts";
import { type ClusterPod, failedSandboxes, placeOf, podsOf } from "./cluster-pods.ts";
import type { KubeletNode } from "./kubelet-node.ts";
import { deployment } from "./workload.ts";

type Signal = "SIGTERM" | "SIGKILL";
/** Ends something and starts it again. */
type Restart = (cluster: Cluster, signal: Signal) => Promise<void>;

const onEachNode =
  (restart: (node: KubeletNode, signal: Signal) => Promise<void>): Restart =>
  async ({ nodes }, signal) => {
    await Promise.all(nodes.map((node) => restart(node, signal)));
  };

const kubelets = onEachNode(async ({ kubelet }, signal) => {
  await kubelet.end(signal);
  kubelet.start();
});
const runtimes = onEachNode(async ({ containerd }, signal) => {
  await containerd.kill(signal);
  await containerd.restart();
});
const apiServer: Restart = async ({ plane }, signal) => {
  await plane.apiServer.end(signal);
  await plane.startApiServer();
};
const agents = onEachNode((node) => node.killAgent());
const switches = onEachNode(async ({ vswitch }, signal) => {
  await vswitch?.stop("ovs-vswitchd", signal);
  await vswitch?.startSwitch();
});
const databases = onEachNode(async ({ vswitch }, signal) => {
  await vswitch?.stop("ovsdb-server", signal);
  await vswitch?.startDatabase();
});

/** What is restarted, and by which signal. Agents get their SIGTERM when the DaemonSet replaces them. */
const strikes = [
  ["every kubelet", "SIGTERM", kubelets],
  ["every kubelet", "SIGKILL", kubelets],
  ["every containerd", "SIGTERM", runtimes],
  ["every containerd", "SIGKILL", runtimes],
  ["the API server", "SIGTERM", apiServer],
  ["the API server", "SIGKILL", apiServer],
  ["every agent", "SIGKILL", agents],
] as const;
const strikesOfSwitches = [
  ["every switch", "SIGKILL", switches],
  ["every switch's database", "SIGKILL", databases],
] as const;

const app = "turning";
/** Of which half as many may be on their way at a time. */
const turning = 8;

/** Each part is restarted on all nodes at once, while pods talk, others come and yet others go. @param hasSwitch the nodes have one */
export function partsAnew(cluster: () => Cluster, hasSwitch: boolean): void {
  const uids = async (name: string) => new Set((await podsOf(cluster(), name)).map(({ uid }) => uid));

  test("pods come that make way for others from now on", async () => {
    await cluster().plane.apply(deployment(app, { replicas: turning }));
    await cluster().rolledOut(app);
  });

  test.each([...strikes, ...(hasSwitch ? strikesOfSwitches : [])])(
    "%s ends by %s and comes back: connections go on, pods stay, come and go as they should",
    async (_, signal, restart) => {
      const { plane } = cluster();
      const pods = await podsOf(cluster(), "web");
      using conversations = await talk(cluster(), pods);
      const before = await uids(app);
      await plane.kubectl(`rollout restart deployment/${app}`);
      // By now runtimes and agents have them under way.
      const isComing = ({ uid, node }: ClusterPod): boolean => node !== "" && !before.has(uid);
      await eventually(async () => (await podsOf(cluster(), app)).some(isComing), "the first pod of a node");
      await restart(cluster(), signal);
      await cluster().rolledOut(app);
      await conversations.goOn();
      // The kubelet misses its runtime, but no plugin has refused anybody.
      expect((await failedSandboxes(plane, app)).filter((why) => why.includes("plugin type="))).toEqual([]);
      expect([...(await uids(app))].filter((uid) => before.has(uid))).toEqual([]);
      expect(await uids("web")).toEqual(new Set(pods.map(({ uid }) => uid)));
    },
  );

  test("after all of that everything agrees", async () => {
    await cluster().plane.kubectl(`delete deployment ${app} --cascade=foreground --timeout=60s`);
    await Promise.all(cluster().nodes.map((each) => each.agrees()));
  });
}

/** Between two pods of the first node, and from there to one of each other node. */
async function talk(cluster: Cluster, pods: readonly ClusterPod[]) {
  const [first, ...others] = cluster.nodes.map(({ name }) => pods.filter(({ node }) => node === name));
  const places = await Promise.all(
    [first?.[0], first?.[1], ...others.map((there) => there[0])].map((pod) => {
      if (pod === undefined) throw new Error("There are too few pods");
      return placeOf(cluster, pod);
    }),
  );
  const [from, ...ends] = places;
  if (from === undefined) throw new Error("There is no node");
  using stack = new DisposableStack();
  const all: Conversation[] = [];
  // Both families, in turn.
  for (const [i, { namespace, addresses }] of ends.entries())
    all.push(stack.use(await Conversation.start(from.namespace, namespace, addresses[i % 2] ?? "")));
  const held = stack.move();
  return {
    /** All of them, until now, and from now on. */
    goOn: async (): Promise<void> => {
      for (const one of all) await one.goesOn();
      expect(all.map(({ ended }) => ended)).toEqual(all.map(() => undefined));
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}
