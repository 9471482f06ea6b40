import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { summarize } from "../bench/stats.ts";
import { Cluster } from "./cluster/cluster.ts";
import type { KubeletNode } from "./cluster/kubelet-node.ts";
import { installPipette } from "./cluster/pipette.ts";
import { deployment } from "./cluster/workload.ts";

/**
 * `npm run bench:kubernetes [-- --rounds 3 --pods 50]`: how long a kubelet takes to bring pods up and to take them down, with
 * Pipette on one node and Debian's bridge and host-local on another of the same cluster. The two take turns, and each is
 * the first as often as the other. It only tells: most of the time is the kubelet's and containerd's.
 */

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "3" }, pods: { type: "string", default: "50" } },
});
const [rounds, pods] = [Number(values.rounds), Number(values.pods)];

const sides = [
  { name: "Pipette, kernel bridge", node: "n1" },
  { name: "bridge + host-local + portmap", node: "n2" },
] as const;

/** For either way of one round: not what is measured, but when it is given up, on a machine that has much else to do. */
const longestSeconds = 300;
const longestMs = (longestSeconds + 10) * 1000;

await using cluster = await Cluster.start(sides.length);
const { plane } = cluster;
for (const _ of sides) await cluster.addNode({ containerd: "1.6", hasSwitch: false });
await cluster.joined();
await installPipette(cluster, { dataPath: "bridge", only: "n1" });
await installPeer(cluster.node("n2"));
await plane.kubectl("wait nodes --all --for=condition=Ready --timeout=60s");

type Way = "up" | "down";
const times = new Map<string, Record<Way, number[]>>(sides.map(({ name }) => [name, { up: [], down: [] }]));
for (const { node } of sides) await plane.apply(deployment(`on-${node}`, { replicas: 0, node }));
// One more than is told: the first pods of a node find nothing in any cache.
for (let round = 0; round <= rounds; round++)
  for (const { name, node } of round % 2 === 0 ? sides : sides.toReversed()) {
    const which = `round ${round} of ${rounds}, ${name}`;
    const limit = `--timeout=${longestSeconds}s`;
    const up = await timed(`${which}, up`, async () => {
      await plane.kubectl(`scale deployment on-${node} --replicas=${pods}`);
      await plane.kubectl(`rollout status deployment/on-${node} ${limit}`, longestMs);
    });
    const down = await timed(`${which}, down`, async () => {
      await plane.kubectl(`scale deployment on-${node} --replicas=0`);
      await plane.kubectl(`wait pods -l app=on-${node} --for=delete ${limit}`, longestMs);
    });
    if (round === 0) continue;
    times.get(name)?.up.push(up);
    times.get(name)?.down.push(down);
  }
await report();

/** Each round's seconds, their medians, and how Pipette's stand to the other's. */
async function report(): Promise<void> {
  const kubelet = (await plane.kubectl("get nodes -o jsonpath={.items[*].status.nodeInfo.kubeletVersion}")).split(" ");
  const runtime = await plane.kubectl("get node n1 -o jsonpath={.status.nodeInfo.containerRuntimeVersion}");
  console.log(`0 → ${pods} → 0 pods, kubelet ${kubelet[0]}, ${runtime}; seconds of each round, and their median`);
  const width = 6 * (rounds + 1) + 3;
  for (const [name, { up, down }] of times)
    console.log(`${name.padEnd(32)} up ${told(up).padEnd(width)} down ${told(down)}`);
  const ratio = (way: Way): string => {
    const [ours = 0, theirs = 0] = [...times.values()].map((each) => summarize(each[way]).median);
    return (ours / theirs).toFixed(2).padStart(width - 4);
  };
  console.log(`${"medians, Pipette : bridge".padEnd(32)} up ${ratio("up").padEnd(width)} down ${ratio("down")}`);
  const loads = loadavg().map((load) => load.toFixed(1));
  console.log(`load of the last 1, 5 and 15 minutes ${loads.join(", ")} on ${availableParallelism()} processors`);
}

function told(ms: readonly number[]): string {
  const each = ms.map((one) => seconds(one).padStart(6)).join("");
  return `${each} | ${seconds(summarize(ms).median).padStart(5)}`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}

/** @throws with what the cluster's parts say, since nothing of it is left a moment later */
async function timed(what: string, work: () => Promise<void>): Promise<number> {
  const from = performance.now();
  try {
    await work();
  } catch (cause) {
    for (const daemon of [plane.apiServer, ...cluster.nodes.map(({ kubelet }) => kubelet)]) daemon.mustRun();
    const told = await Promise.all([plane.kubectl("get pods -A -o wide"), plane.kubectl("get events -A")]);
    throw new Error(`Cannot measure ${what}: not done in time\n${told.join("\n")}`, { cause });
  }
  const ms = performance.now() - from;
  console.error(`${what}: ${seconds(ms)} s`);
  return ms;
}

/** The network of the node's block, as a cluster without Pipette has it. */
async function installPeer(node: KubeletNode): Promise<void> {
  const { spec } = await plane.get<{ spec: { podCIDRs: string[] } }>(`node ${node.name}`);
  const ipam = {
    type: "host-local",
    ranges: spec.podCIDRs.map((subnet) => [{ subnet }]),
    routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }],
  };
  const list = {
    cniVersion: "1.0.0",
    name: "peer",
    plugins: [
      { type: "bridge", bridge: "cni0", isGateway: true, ipMasq: true, ipam },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
    ],
  };
  await node.place.runWords(["sh", "-c", 'echo "$0" > /etc/cni/net.d/10-peer.conflist', JSON.stringify(list)]);
}
