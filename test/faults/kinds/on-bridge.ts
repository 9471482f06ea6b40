import { BridgeNode } from "../node/bridge-node.ts";

/** What is struck by most faults is a machine that the test can reach into. */
export function bridgeNode(node: object): BridgeNode {
  if (node instanceof BridgeNode) return node;
  throw new Error("Cannot strike: the node is none with a kernel bridge, wanted one");
}
