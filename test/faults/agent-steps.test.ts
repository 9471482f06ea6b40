import { BridgeNode } from "../stress/bridge-node.ts";
import { describeAgentAtSteps } from "./agent-at-steps.ts";

describeAgentAtSteps({ on: "a kernel bridge", needs: [], start: (options) => BridgeNode.start(options) });
