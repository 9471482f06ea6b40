import { describeAgentAtSteps } from "./agent-at-steps.ts";
import { BridgeNode } from "./node/bridge-node.ts";

describeAgentAtSteps({ on: "a kernel bridge", needs: [], start: (options) => BridgeNode.start(options) });
