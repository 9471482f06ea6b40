import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";
import { answers } from "./lab/reach.ts";

describeWith("IPsec between two nodes", ["root", "openvswitch", "nft", "etcd", "tun"], () => {
  let lab: Lab;
  let near: LabPod;
  let far: LabPod;
  let capture: Capture;
  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"], esp: "userspace", ovs: { encryption: "ipsec", ipsec: { esp: "userspace" } } });
    [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
    capture = await Capture.start(lab.underlay, [1, 2]);
  });
  afterAll(async () => {
    capture?.[Symbol.dispose]();
    await lab?.[Symbol.asyncDispose]();
  });
  test("x", async () => {
    const show = async () => {
      for (const node of lab.nodes) {
        console.log(await node.ipsec.run("ipsec", "statusall"));
        console.log(await node.ipsec.run(...node.ipsec.control("ipsec/status")));
        console.log(node.ipsec.log.slice(-3000));
        console.log(await node.vswitch.vsctl("show"));
        console.log(await node.namespace.run("nft list ruleset"));
        console.log(await node.namespace.run("ip route show table all"));
        console.log(JSON.stringify(await node.home.status()));
      }
    };
    try {
      await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other");
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(true);
      expect(capture.having(marker)).toBe(0);
      console.log([...capture.kinds()]);
      await show();
    } catch (e) { await show(); throw e; }
  });
});
