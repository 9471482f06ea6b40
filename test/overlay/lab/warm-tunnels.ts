import { eventually } from "../../support/agent-process.ts";
import { forgetNeighbours } from "../../support/forget-neighbours.ts";
import { routerOn } from "./addresses.ts";
import type { LabNode } from "./lab-node.ts";
import { answers } from "./reach.ts";

/**
 * Lets each switch learn where the other nodes' tunnels end. In user space it asks by itself, but drops the packet
 * that made it ask; that would be taken for a fault of the flows.
 */
export async function warmTunnels(nodes: readonly LabNode[]): Promise<void> {
  for (const node of nodes) await Promise.all(nodes.filter((peer) => peer !== node).map((peer) => warm(node, peer)));
}

/** What the switch overhears of one ping between the nodes is enough, once it has a tunnel. */
async function warm(node: LabNode, peer: LabNode): Promise<void> {
  const [address] = peer.addresses;
  const next = node.link === peer.link ? address : routerOn(node.link)[0];
  await eventually(async () => {
    await forgetNeighbours(node.namespace, `to ${next}`);
    await answers(node.namespace, address);
    return (await node.vswitch.switchControl("tnl/neigh/show")).includes(`${next} `);
  }, `the switch of ${node.name} to know the way to ${peer.name}`);
}
