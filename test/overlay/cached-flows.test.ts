import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { gateways, SingleNode } from "./single-node.ts";

const dataPath = "netdev@ovs-netdev";
const [, gateway] = gateways;

describeWith("what a switch in user space has cached of its flows", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;
  let pod: LabPod;

  beforeAll(async () => {
    compileExecutables();
    single = await SingleNode.start();
    pod = await single.node.addPod("a");
  }, 120_000);
  afterAll(() => single?.[Symbol.asyncDispose]());

  async function reaches(): Promise<boolean> {
    await pod.namespace.run("ip -6 neigh flush dev eth0");
    return answers(pod.namespace, gateway, { seconds: 1 });
  }

  /** As Open vSwitch 3.1.0 leaves one that it has put right in the place of another: the switch takes it for what it should be. */
  async function dropQuestions(): Promise<void> {
    const { vswitch } = single.node;
    const entries = (await vswitch.switchControl("dpctl/dump-flows", "-m", dataPath)).split("\n");
    const question = entries.find((line) => line.includes(`nd(target=${gateway},`) && line.includes(pod.address(6)));
    const [key = ""] = question?.split(", packets:") ?? [];
    await vswitch.switchControl("dpctl/mod-flow", dataPath, key, "drop");
  }

  test("is forgotten where the agent puts flows right, so that nobody's packets go by those of before", async () => {
    const { node } = single;
    const management = `unix:${node.vswitch.management("br-int")}`;
    const foreign = "table=30,priority=190,in_port=60000,actions=drop";
    expect(await reaches()).toBe(true);
    await dropQuestions();
    // The flows of others come and go, and the entry stays as long as there are packets.
    await node.vswitch.run("ovs-ofctl", "-OOpenFlow15", "add-flow", management, foreign);
    for (let i = 0; i < 4; i++) expect(await reaches()).toBe(false);
    await node.pipette("doctor", "--repair", "--config", node.home.configFile);
    await eventually(reaches, "the pod to reach its gateway again");
  }, 90_000);
});
