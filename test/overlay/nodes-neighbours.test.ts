import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";

describeWith("a node that another one knows before it can be reached", ["root", "openvswitch", "nft", "etcd"], () => {
  let lab: Lab;
  let pods: readonly [LabPod, LabPod];

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"] });
    pods = [await lab.node(1).addPod("web"), await lab.node(2).addPod("far")];
  });
  afterAll(() => lab?.[Symbol.asyncDispose]());

  test("soon after it can be, it is known, and the first ping is answered", async () => {
    const [near, far] = [lab.node(1), lab.node(2)];
    await near.agent.end("SIGKILL");
    await far.namespace.ip("link set nic0 down");
    await near.vswitch.switchControl("tnl/neigh/flush");
    await near.startAgent();
    await Bun.sleep(1_200);
    const known = () => near.vswitch.switchControl("tnl/neigh/show");
    expect(await known()).not.toContain(far.addresses[0]);
    await far.namespace.ip("link set nic0 up");
    // By far less than the seconds at which nodes are asked for that have long been absent.
    await expect.poll(known, { timeout: 2_500 }).toContain(far.addresses[0]);
    expect(await answers(pods[0].namespace, pods[1].address(4), { seconds: 1 })).toBe(true);
  });
});
