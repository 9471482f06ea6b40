import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { type FlowChange, withSaboteur } from "./lab/saboteur.ts";
import { podPortsOf, SingleNode } from "./single-node.ts";

interface Report {
  readonly findings: readonly { readonly code: string; readonly what: string; readonly severity: string }[];
  readonly repaired: readonly { readonly done?: string; readonly error?: string }[];
}

describeWith("pipette doctor with Open vSwitch", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;
  let a: LabPod;
  let b: LabPod;

  beforeAll(async () => {
    compileExecutables();
    single = await SingleNode.start();
    [a, b] = await Promise.all([single.node.addPod("a"), single.node.addPod("b")]);
  }, 180_000);
  afterAll(() => single?.[Symbol.asyncDispose]());

  const doctor = async (...args: readonly string[]): Promise<Report> => {
    const { executables, namespace, home } = single.node;
    const words = [`${executables}/pipette`, "doctor", "--config", home.configFile, "--json", ...args];
    const { status, stdout, stderr } = await namespace.start(words).ended;
    if (status !== 0 && status !== 1) throw new Error(`status ${status}: ${stderr}`);
    return JSON.parse(stdout);
  };
  /** One look: nothing is under way. */
  const codes = async (): Promise<readonly string[]> =>
    (await doctor("--once")).findings.map(({ code }) => code).sort();

  test("is content with pods that are in order", async () => {
    expect((await doctor()).findings).toEqual([]);
  });

  test("a port without a pod is found while no agent runs, and taken out by the next one", async () => {
    const ids = { type: "pod", network: "pods", sandbox: "ghost", ifname: "eth0" };
    const set = Object.entries(ids).map(([key, value]) => `external_ids:pipette-${key}=${value}`);
    // One that runs takes it out as soon as it hears of it.
    await single.node.agent.end("SIGKILL");
    await single.node.vswitch.vsctl(
      ...["add-port", "br-int", "ghost0", "--", "set", "Port", "ghost0", ...set],
      ...["--", "set", "Interface", "ghost0", "type=internal"],
    );
    const { findings } = await doctor();
    const ghost = { code: "port-without-pod", what: expect.stringContaining('"ghost0" of "eth0"') };
    expect(findings).toEqual(expect.arrayContaining([expect.objectContaining(ghost)]));
    await single.node.startAgent();
    await eventually(async () => (await podPortsOf(single)).length === 2, "the end of the port");
    expect((await doctor()).findings).toEqual([]);
    expect(await single.node.namespace.run("ip -br link")).not.toContain("ghost0");
  });

  const inOrder = async (before: readonly string[]): Promise<void> => {
    await eventually(async () => isDeepStrictEqual(await single.node.flows(), before), "the flows of before");
    expect((await doctor("--repair")).findings).toEqual([]);
    expect(await answers(a.namespace, b.address(4), { seconds: 5 })).toBe(true);
  };

  test("flows that somebody deletes, changes or adds are told, and are put right", async () => {
    const before = await single.node.flows();
    const [port] = await podPortsOf(single);
    const number = (await single.node.vswitch.vsctl("get", "Interface", port ?? "", "ofport")).trim();
    const changes: readonly FlowChange[] = [
      ["del-flows", `in_port=${number}`],
      // Round 1, category of pods.
      ["add-flow", "cookie=0x1010000000000,table=30,priority=190,in_port=999,actions=drop"],
    ];
    await withSaboteur(single.node, changes, async () => {
      await expect.poll(codes).toEqual(["flows-without-port", "port-without-flows", "shortcoming", "shortcoming"]);
      await expect
        .poll(() => single.node.pipette("status", "--socket", single.node.home.socket).catch(String))
        .toMatch(/\nshortcoming: the switch lacks \d+ flows.*\nshortcoming: the switch has 1 flow of somebody else/);
    });
    await inOrder(before);
  });

  test("a flow that drops everything, and those of the node itself lost: the same", async () => {
    const before = await single.node.flows();
    const changes: readonly FlowChange[] = [
      ["add-flow", "table=0,priority=65535,actions=drop"],
      ["del-flows", "table=240"],
    ];
    await withSaboteur(single.node, changes, async () => {
      await expect.poll(codes).toEqual(["shortcoming", "shortcoming"]);
    });
    await inOrder(before);
  });

  test("an interface whose port was deleted while no agent ran, and a switch that is away", async () => {
    await single.node.agent.end();
    const [port] = await podPortsOf(single);
    await single.node.vswitch.vsctl("del-port", "br-int", port ?? "");
    expect(await codes()).toEqual(["agent-away", "flows-without-port", "interface-without-port"]);
    await single.node.startAgent();
    expect((await doctor()).findings).toEqual([]);
    await single.node.vswitch.stop("ovs-vswitchd");
    expect(await codes()).toContain("switch-unreachable");
    await single.node.vswitch.startSwitch();
    await eventually(async () => (await codes()).length === 0, "everything to be in order again");
  });
});
