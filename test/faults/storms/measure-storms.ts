import type { BenchRun } from "../../bench/bench-program.ts";
import { BridgeNode } from "../node/bridge-node.ts";
import { agentDown } from "./agent-down.ts";
import { churn } from "./churn.ts";
import { crossing } from "./crossing.ts";
import { again, crowd } from "./crowd.ts";
import { exactly } from "./exact-pool.ts";
import { peerOf } from "./peer.ts";
import type { StormFigures, StormOptions } from "./storm.ts";

export interface StormSizes {
  /** Pods that come and go at once. */
  readonly crowd: number;
  /** Pods of a full node: added again at once, and deleted at once while the agent is down. */
  readonly full: number;
  readonly downMs: number;
  readonly churn: { readonly lanes: number; readonly pods: number };
  readonly crossings: number;
  readonly seed: number;
}

/** Every storm, ours and, where they can do it, that of Debian's bridge with host-local. */
export async function measureStorms(
  { dist, peers, progress }: Pick<BenchRun, "dist" | "peers" | "progress">,
  sizes: StormSizes,
): Promise<StormFigures[]> {
  const all: StormFigures[] = [];
  const add = async (options: StormOptions, run: () => Promise<StormFigures>): Promise<void> => {
    progress(`${options.name}, ${options.of ?? "pipette"}`);
    all.push(await run());
  };
  const onNode = async (addresses: number, work: (node: BridgeNode, peer: StormOptions["node"]) => Promise<void>) => {
    await using node = await BridgeNode.start({ ...exactly(addresses), executables: dist });
    await using peer = peerOf(node, peers, addresses);
    await work(node, peer);
  };
  const peerName = "bridge + host-local";

  // One address more than pods: with none left `pipette doctor` rightly says that no new pod gets one.
  await onNode(sizes.crowd + 1, async (node, peer) => {
    const ours = { name: "pods at once", node, pods: sizes.crowd };
    await add(ours, () => crowd(ours));
    const theirs = { ...ours, node: peer, of: peerName };
    await add(theirs, () => crowd(theirs, false));
  });
  await onNode(sizes.churn.lanes, async (node, peer) => {
    const ours = { name: `churn, ${sizes.churn.lanes} addresses`, node, pods: sizes.churn.pods };
    await add(ours, () => churn(ours, sizes.churn.lanes));
    const theirs = { ...ours, node: peer, of: peerName };
    await add(theirs, () => churn(theirs, sizes.churn.lanes, false));
  });
  await onNode(sizes.full + 1, async (node) => {
    const repeated = { name: "ADD, CHECK again", node, pods: sizes.full };
    await add(repeated, () => again(repeated));
    const drained = { name: "DEL, agent down", node, pods: sizes.full };
    await add(drained, () => agentDown(drained, sizes.downMs));
    const crossed = { name: `crossing, seed ${sizes.seed}`, node, pods: sizes.crossings };
    await add(crossed, () => crossing(crossed, sizes.seed));
  });
  return all;
}
