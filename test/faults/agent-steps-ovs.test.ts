import { OvsNode } from "../stress/ovs-node.ts";
import { describeAgentAtSteps } from "./agent-at-steps.ts";

describeAgentAtSteps({
  on: "Open vSwitch",
  needs: ["openvswitch", "etcd"],
  isBrief: true,
  start: (options) => OvsNode.start(options),
});
