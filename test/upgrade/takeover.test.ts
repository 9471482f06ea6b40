import { beforeAll, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { bridgeName, networkName } from "../support/agent-process.ts";
import { describeWith, whyNot } from "../support/requires.ts";
import { earlierExecutables } from "./earlier-release.ts";
import { thereAndBack } from "./there-and-back.ts";
import { UpgradeNode } from "./upgrade-node.ts";

const pods = 50;
/** Some ten seconds each, on a machine with very much else to do some minutes. */
const patienceMs = 300_000;

describeWith("a node with pods is upgraded, taken back and upgraded again", ["root", "nft", "earlier-release"], () => {
  let earlier: string;

  beforeAll(async () => {
    compileExecutables();
    earlier = await earlierExecutables("linux");
  });

  test(
    "on a kernel bridge: pods keep talking, and keep interfaces, addresses, MACs and routes",
    async () => {
      const subnets = ["10.78.0.0/24", "fd78::/64"];
      const networks = [{ name: networkName, subnets, bridge: bridgeName, masquerade: true }];
      await using node = await UpgradeNode.withBridge({ networks });
      await thereAndBack(node, { earlier, now: executables }, pods);
    },
    patienceMs,
  );

  const switchReason = whyNot("openvswitch");
  test(
    "on Open vSwitch: ports and flows, too, are what they were under the same release",
    async (context) => {
      if (switchReason !== undefined) context.skip(switchReason);
      await using node = await UpgradeNode.withOpenVswitch();
      await thereAndBack(node, { earlier, now: executables }, pods);
    },
    patienceMs,
  );
});
