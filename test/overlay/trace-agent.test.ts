import { afterAll, beforeAll, expect, test } from "vitest";
import { traceCommand } from "../../agent/trace/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { runAt } from "../support/terminal-run.ts";
import { SingleNode } from "./single-node.ts";

interface Traced {
  readonly verdict: { readonly t: string; readonly text: string };
}

describeWith("pipette trace of pods that the agent has wired", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;
  const where = (): readonly string[] => {
    const { home, vswitch } = single.node;
    return ["--config", home.configFile, "--control", vswitch.control, "--json"];
  };
  const trace = async (...args: readonly string[]): Promise<Traced["verdict"]> => {
    const { stdout, stderr } = await runAt("pipette trace", traceCommand, [...args, ...where()]);
    expect(stderr).toBe("");
    return (JSON.parse(stdout) as Traced).verdict;
  };

  beforeAll(async () => {
    compileExecutables();
    single = await SingleNode.start();
    await single.node.addPod("a", { project: "shop" });
    await single.node.addPod("b", { project: "shop" });
  }, 120_000);
  afterAll(() => single?.[Symbol.asyncDispose]());

  test("pods are found by their names and addresses", async () => {
    const [, b] = single.node.pods;
    for (const to of ["shop/b", "b", ...(b?.addresses ?? [])])
      expect((await trace("a", to)).text).toMatch(/^delivered to pod shop\/b by port /);
    const typed = JSON.parse(await single.node.pipette("trace", "a", "b", ...where())) as Traced;
    expect(typed.verdict.text).toMatch(/^delivered to pod shop\/b by port /);
    expect((await trace("a", b?.address(6) ?? "", "--tcp", "80")).t).toBe("delivered");
    expect((await trace("a", "b", "--as-ip", "10.10.1.77")).text).toContain("dropped in table SpoofGuard");
    expect((await trace("a", "198.51.100.1")).text).toBe("left to the node itself, by the gateway port pipette-gw0");
  });

  test("a pod whose flows somebody has deleted is dropped where they are missing", async () => {
    const { vswitch } = single.node;
    const target = `unix:${vswitch.management("br-int")}`;
    const [a] = single.node.pods;
    const guard = (await single.node.flows()).find((line) => line.includes(`nw_src=${a?.address(4)} `));
    const own = /in_port=(\d+)/.exec(guard ?? "")?.[1];
    await vswitch.run("ovs-ofctl", "-O", "OpenFlow15", "del-flows", target, `table=30,in_port=${own}`);
    const verdict = await trace("a", "b");
    expect(verdict.text).toContain("dropped in table Classifier");
    expect(verdict.text).toContain("the agent has not programmed it");
  });
});
