import { BridgeNode } from "../node/bridge-node.ts";
import { OvsNode } from "../node/ovs-node.ts";
import { PolicedNode } from "../node/policed-node.ts";
import type { StressNode } from "../node/stress-node.ts";
import { WindowsStressNode } from "../node/windows-node.ts";

/** Shorter than by default: a fault is to last longer than a call waits, now and then. */
const plugin = { addTimeoutMs: 15_000, delTimeoutMs: 5_000 };

/** The nodes that can be soaked, by data path, and one whose pods policies close all the time; each starts with an agent that is ready. */
export const soakNodes: Readonly<Record<string, () => Promise<StressNode>>> = {
  bridge: () => BridgeNode.start({ plugin, clock: true, dataDirMb: 64 }),
  policies: () => PolicedNode.start({ plugin, clock: true, dataDirMb: 64 }),
  ovs: () => OvsNode.start({ plugin, clock: true, dataDirMb: 64 }),
  hns: () => WindowsStressNode.start({ plugin, agent: { hnsTimeoutMs: 5_000 } }),
};
