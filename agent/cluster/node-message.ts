import type { RegisteredNode } from "../../shared/proto/daemon-services.ts";
import type { ListedNode, NodeState } from "./node-registry.ts";
import { nodeOfText, textOfNode } from "./node-text.ts";

/** A node as the agent tells it, and back. */
export function messageOfNode({ state, problem = "", ...node }: ListedNode): RegisteredNode {
  return { uid: "", mac: "", ...textOfNode(node), state, problem };
}

export function nodeOfMessage({ state, problem, uid, mac, ...text }: RegisteredNode): ListedNode {
  const node = nodeOfText({ ...text, uid, ...(mac === "" ? {} : { mac }) });
  return { ...node, state: isState(state) ? state : "unknown", ...(problem === "" ? {} : { problem }) };
}

const isState = (text: string): text is NodeState => text === "ready" || text === "lost";
