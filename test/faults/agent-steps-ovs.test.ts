import { describeAgentAtSteps } from "./agent-at-steps.ts";
import { OvsNode } from "./node/ovs-node.ts";

describeAgentAtSteps({
  on: "Open vSwitch",
  needs: ["openvswitch", "etcd"],
  isBrief: true,
  start: (options) => OvsNode.start(options),
});
