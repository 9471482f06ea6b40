import { describeAgentAtSteps } from "./agent-at-steps.ts";
import { PolicedNode } from "./node/policed-node.ts";

describeAgentAtSteps({
  on: "a kernel bridge with network policies",
  needs: [],
  isBrief: true,
  start: (options) => PolicedNode.start(options),
});
