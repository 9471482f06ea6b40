import { afterEach, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";

/** Where nothing can be encrypted nothing leaves, and what is missing is said. */
describeWith(
  "IPsec that cannot be",
  ["root", "openvswitch", "nft", "etcd", "strongswan", "ovs-monitor-ipsec", "tun"],
  () => {
    let lab: Lab | undefined;
    beforeAll(compileExecutables);
    afterEach(async () => lab?.[Symbol.asyncDispose]());

    const start = async (options: Partial<LabOptions>): Promise<Lab> => {
      lab = await Lab.ground({ nodes: ["a", "a"], ovs: { encryption: "ipsec" }, esp: "kernel", ...options });
      await lab.startRegistry();
      for (const node of lab.nodes) await node.startAgent();
      return lab;
    };
    const expectNothingBetween = async (nodes: readonly LabNode[], { underlay }: Lab): Promise<void> => {
      const [near, far] = (await Promise.all(nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      using capture = await Capture.start(underlay, [1, 2]);
      for (const address of far.addresses) expect(await says(near, address)).toBe(false);
      for (const address of near.addresses) expect(await says(far, address)).toBe(false);
      expect(capture.having(marker)).toBe(0);
      const kinds = [...capture.kinds().keys()].filter((kind) => kind !== "ike" && kind !== "other");
      expect(kinds).toEqual([]);
    };
    const problems = async (node: LabNode): Promise<string> =>
      (await node.home.status()).problems.map(({ message }) => message).join("\n");

    test("a switch in user space sends past the kernel: there is no tunnel", async () => {
      const { nodes } = await start({ nic: "outer-bridge" });
      const is = 'the switch sends by "nic0" past the node\'s kernel, where nothing is encrypted: there is no tunnel';
      for (const node of nodes) expect(await problems(node)).toContain(is);
      for (const node of nodes) expect(await node.vswitch.vsctl("show")).not.toContain("geneve");
      await expectNothingBetween(nodes, lab!);
    });

    test("a kernel without ESP: keys are agreed on, and nothing is sent", async () => {
      const { nodes } = await start({});
      await expectNothingBetween(nodes, lab!);
      const told = async (): Promise<boolean> =>
        /nothing goes to the pods of node "n\d" at 172\.30\.0\.\d: .*kernel (does not take|cannot encrypt)/.test(
          (await nodes[0]!.home.status()).shortcomings.join("\n"),
        );
      await eventually(told, "what the kernel lacks");
      // strongSwan has made it 165 s, and what the first node said too early would count for so long.
      for (const { namespace } of nodes)
        expect((await namespace.run("cat /proc/sys/net/core/xfrm_acq_expires")).trim()).toBe("10");
      // The controls: they have agreed, so the configuration is right, and only the kernel is not.
      expect(nodes.map((node) => node.ipsec.log).join()).toMatch(/IKE_SA p-n\d-\w+-\w+-\d+\[\d+\] established/);
    });

    test("a node joins while one is there", async () => {
      const { nodes } = await start({ nodes: ["a"] });
      const joined = await lab!.addNode("a");
      await joined.startAgent();
      await expectNothingBetween([...nodes, joined], lab!);
    });
  },
);
