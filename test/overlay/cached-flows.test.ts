import { afterAll, beforeAll, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { forgetNeighbours } from "../support/forget-neighbours.ts";
import { describeWith } from "../support/requires.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { gateways, SingleNode } from "./single-node.ts";

const dataPath = "netdev@ovs-netdev";
const [gateway] = gateways;

describeWith("what a switch in user space has cached of its flows", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;
  let pod: LabPod;

  beforeAll(async () => {
    compileExecutables();
    single = await SingleNode.start();
    pod = await single.node.addPod("a");
  });
  afterAll(() => single?.[Symbol.asyncDispose]());

  async function reaches(): Promise<boolean> {
    await forgetNeighbours(pod.namespace, "dev eth0");
    return answers(pod.namespace, gateway, { seconds: 1 });
  }

  /**
   * As Open vSwitch 3.1.0 leaves the entry that it should have put right when it has put another one right in its place: it
   * takes it for what it should be. @returns whether there was one
   */
  async function dropQuestions(): Promise<boolean> {
    const { vswitch } = single.node;
    const entries = (await vswitch.switchControl("dpctl/dump-flows", "-m", dataPath)).split("\n");
    const question = entries.find((line) => line.includes(`arp(sip=${pod.address(4)},tip=${gateway},`));
    const [key = ""] = question?.split(", packets:") ?? [];
    return vswitch.switchControl("dpctl/mod-flow", dataPath, key, "drop").then(
      () => true,
      () => false,
    );
  }

  test("is forgotten where the agent puts flows right, so that nobody's packets go by those of before", async () => {
    const { node } = single;
    const management = `unix:${node.vswitch.management("br-int")}`;
    const foreign = "table=30,priority=190,in_port=60000,actions=drop";
    // Not before what an agent's start forgets has gone; from then on it stays as long as there are packets.
    await eventually(async () => {
      if (!(await reaches()) || !(await dropQuestions())) return false;
      for (let i = 0; i < 3; i++) if (await reaches()) return false;
      return true;
    }, "the pod to be kept from its gateway");
    await node.vswitch.run("ovs-ofctl", "-OOpenFlow15", "add-flow", management, foreign);
    await node.pipette("doctor", "--repair", "--config", node.home.configFile);
    await eventually(reaches, "the pod to reach its gateway again");
  });
});
