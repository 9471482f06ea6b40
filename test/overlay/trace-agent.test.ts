import { afterAll, beforeAll, expect, test } from "vitest";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { runAt } from "../fakes/terminal-run.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";

interface Traced {
  readonly verdict: { readonly t: string; readonly text: string; readonly remark?: string };
  readonly next?: string;
}

const where = ({ home, vswitch }: LabNode): readonly string[] => [
  ...["--config", home.configFile],
  ...["--control", vswitch.control, "--json"],
];

async function trace(node: LabNode, ...args: readonly string[]): Promise<Traced> {
  const { stdout, stderr } = await runAt("pipette trace", traceCommand, [...args, ...where(node)]);
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Traced;
}

/** What the first node's answer says to type on the other one. */
function goOn(node: LabNode, { next = "" }: Traced): Promise<Traced> {
  const [pipette, command, ...args] = next.split(" ");
  expect([pipette, command]).toEqual(["pipette", "trace"]);
  return trace(node, ...args);
}

describeWith("pipette trace of pods that agents have wired", ["root", "openvswitch", "nft", "etcd"], () => {
  let lab: Lab;
  let nodes: readonly [LabNode, LabNode];
  let [a, c, other]: LabPod[] = [];

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"], ovs: { tenants: "multitenant" } });
    nodes = [lab.node(1), lab.node(2)];
    a = await nodes[0].addPod("a", { project: "shop" });
    await nodes[0].addPod("b", { project: "shop" });
    c = await nodes[1].addPod("c", { project: "shop" });
    other = await nodes[1].addPod("d", { project: "bank" });
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  test("pods of one node are found by their names and addresses", async () => {
    const [node] = nodes;
    const [, b] = node.pods;
    for (const to of ["shop/b", "b", ...(b?.addresses ?? [])])
      expect((await trace(node, "a", to)).verdict.text).toMatch(/^delivered to pod shop\/b by port /);
    const typed = JSON.parse(await node.pipette("trace", "a", "b", ...where(node))) as Traced;
    expect(typed.verdict.text).toMatch(/^delivered to pod shop\/b by port /);
    expect((await trace(node, "a", "b", "--as-ip", "10.99.0.1")).verdict.text).toContain("dropped in table SpoofGuard");
  });

  test("the way to a pod of another node, there and back, as packets take it", async () => {
    const [here, there] = nodes;
    for (const family of [4, 6] as const) {
      const [from, to] = [a?.address(family) ?? "", c?.address(family) ?? ""];
      // An agent puts what it knows on the disk a moment later.
      await eventually(async () => (await trace(here, "a", to)).verdict.text.includes("to node n2 ("), "the name");
      await eventually(async () => (await trace(there, "c", from)).verdict.text.includes("to node n1 ("), "the name");
      const sent = await trace(here, "a", to);
      expect((await goOn(there, sent)).verdict.text).toMatch(/^delivered to pod shop\/c by port /);
      const answered = await trace(there, from, "c", "--reply");
      expect(answered.verdict.text).toContain("to node n1 (");
      expect((await goOn(here, answered)).verdict.text).toMatch(/^delivered to pod shop\/a by port /);
      expect(await answers(a!.namespace, to)).toBe(true);
    }
  });

  test("a pod of another project is reached neither by packets nor in a trace", async () => {
    const [here, there] = nodes;
    const to = other?.address(4) ?? "";
    const { verdict } = await goOn(there, await trace(here, "a", to));
    expect(verdict.text).toContain("dropped in table TenantIsolation");
    expect(verdict.text).toMatch(/the sender's has VNID \d+, the receiver's \d+$/);
    expect(await answers(a!.namespace, to, { seconds: 1 })).toBe(false);
  });

  test("where flows are missing the trace says so", async () => {
    const [node] = nodes;
    using _ = await node.agent.held();
    const target = `unix:${node.vswitch.management("br-int")}`;
    const remove = (match: string) => node.vswitch.run("ovs-ofctl", "-O", "OpenFlow15", "del-flows", target, match);
    const to = c?.address(4) ?? "";
    // Those of other nodes.
    await remove("cookie=0x0c0000000000/0xff0000000000");
    expect((await trace(node, "a", to)).verdict.remark).toContain(`neither a pod of this node nor a known node's`);
    expect(await answers(a!.namespace, to, { seconds: 1 })).toBe(false);
    // Those of pods.
    await remove("cookie=0x010000000000/0xff0000000000");
    const { verdict } = await trace(node, "a", "b");
    expect(verdict.text).toContain("dropped in table Classifier");
    expect(verdict.text).toContain("the agent has not programmed it");
  });
});
