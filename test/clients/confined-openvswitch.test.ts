import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findHelm } from "../../build/helm.ts";
import { template } from "../../build/manifests.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { objectsIn } from "../manifests/manifest.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ConfinedNode } from "./confined-node.ts";
import { podOf } from "./manifest-pod.ts";
import { openVswitchArchive, openVswitchImage } from "./openvswitch-archive.ts";

const config = {
  dataPath: "ovs",
  networks: [{ name: "pods", subnets: ["10.93.0.0/24", "fd93::/64"], bridge: "br-int" }],
  ovs: { datapath: "netdev", nodeAddresses: ["192.0.2.1"] },
  janitorIntervalMs: 500,
};

describeWith(
  "Open vSwitch in pods, of the image that npm makes, with the rights that the chart asks for",
  ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft", "openvswitch", "helm"],
  () => {
    const scratch = mkdtempSync(join(tmpdir(), "pipette-image-"));
    let archives: Readonly<Record<string, string>>;

    beforeAll(() => {
      compileExecutables();
      archives = { [openVswitchImage]: openVswitchArchive(scratch) };
    });
    afterAll(() => rmSync(scratch, { recursive: true, force: true }));

    test("gives pods their network, which the end of an agent does not touch, and takes them over when it is started anew itself", async () => {
      const values = ["--set", "dataPath=ovs,linux.config.ovs.datapath=netdev"];
      const objects = objectsIn(await template(findHelm() ?? "", values));
      await using node = await ConfinedNode.start({ pod: podOf(objects, "pipette-agent"), archives });
      const daemons = podOf(objects, "pipette-openvswitch");
      const start = async () => {
        expect(await node.install(daemons)).toEqual([expect.stringMatching(/^0: /)]);
        return [await node.startBeside(daemons, "ovsdb-server"), await node.startBeside(daemons, "ovs-vswitchd")];
      };
      const started = await start();
      expect(await node.install()).toEqual([expect.stringMatching(/^0: /)]);
      expect(await node.startAgent(config)).toBe("ready");
      await eventually(async () => (await node.cri.networkProblem()) === undefined, "containerd to find its network");
      const [one, other] = [await node.cri.runPod("one"), await node.cri.runPod("other")];
      const inOne = await node.cri.startContainer(one, "sleep 1000");
      const { addresses } = await node.cri.podStatus(other);
      const talks = async () => {
        for (const target of [...addresses, "10.93.0.1", "fd93::1"])
          if (!(await node.cri.exec(inOne, `ping -c 1 -W 2 ${target}`).catch(String)).includes(" 0% packet loss"))
            return false;
        return true;
      };
      expect(await talks()).toBe(true);
      expect(await node.cri.exec(node.agent, "/pipette doctor")).toContain("all agree");
      await node.endAgent();
      expect(await talks()).toBe(true);
      // An update of the daemons: the database stays on the node, and the agent puts the flows back.
      expect(await node.startAgent(config)).toBe("ready");
      for (const { id } of started.toReversed()) await node.cri.endContainer(id, 10);
      await start();
      await eventually(talks, "pods to reach each other again");
      expect(await node.cri.exec(node.agent, "/pipette status")).toContain("no problems");
    });
  },
);
