import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { executables } from "../wine/prefix.ts";
import { NodeSwitch, OverlayWindowsNode, portOf } from "./overlay-node.ts";

const [a, b] = ["5a5a5a5a-0000-4000-8000-000000000001", "5a5a5a5a-0000-4000-8000-000000000002"];

describeWith("an Open vSwitch of a Windows node that fails", ["root", "openvswitch"], () => {
  let real: NodeSwitch;
  beforeAll(async () => {
    real = await NodeSwitch.start();
  });
  afterAll(() => real?.[Symbol.asyncDispose]());

  describeWine("in Wine", (wine) => {
    let node: OverlayWindowsNode;
    beforeAll(async () => {
      node = await OverlayWindowsNode.make(wine.prefix, real);
      for (const namespace of [a, b]) node.windows.addNamespace(namespace);
      await node.start();
    });
    afterAll(() => node?.[Symbol.asyncDispose]());

    test("without its database there is no ADD, and no endpoint of one; DEL does what it can, and the rest later", async () => {
      const { windows } = node;
      const port = portOf(await windows.cni("ADD", "a", { netns: a }));
      node.startContainer(port);
      await expect.poll(() => real.flowsOf("10.9.0.2")).not.toEqual([]);
      await real.vswitch.stop("ovsdb-server", "SIGKILL");
      const refused = await windows.cni("ADD", "b", { netns: b });
      expect(refused).toMatchObject({ t: "error", code: 11, message: expect.stringContaining("tcp:127.0.0.1:") });
      expect(windows.endpoints()).toHaveLength(1);
      expect(await windows.cni("DEL", "a", { netns: a })).toMatchObject({ t: "ok" });
      expect(windows.endpoints()).toEqual([]);
      // Without its database ovs-vswitchd does not listen to anybody.
      await real.vswitch.startDatabase();
      await expect.poll(() => real.ports()).not.toContain(port);
      await expect.poll(() => real.flowsOf("10.9.0.2")).toEqual([]);
      await expect.poll(async () => (await windows.cni("ADD", "b", { netns: b })).t).toBe("ok");
      expect(await windows.disagreements()).toEqual([]);
    });

    test("while the switch hangs pods come and go, and it has what it is to have once it goes on", async () => {
      const { windows } = node;
      const second = portOf(await windows.cni("ADD", "b", { netns: b }));
      node.startContainer(second);
      await expect.poll(() => real.flowsOf(node.addressOf(second))).not.toEqual([]);
      await real.vswitch.stop("ovs-vswitchd", "SIGSTOP");
      const first = portOf(await windows.cni("ADD", "a", { netns: a }));
      node.startContainer(first);
      const [gone, come] = [second, first].map((port) => node.addressOf(port));
      expect(await windows.cni("DEL", "b", { netns: b })).toMatchObject({ t: "ok" });
      expect(windows.endpoints()).toHaveLength(1);
      await real.vswitch.stop("ovs-vswitchd", "SIGCONT");
      await expect.poll(() => real.flowsOf(come ?? "")).not.toEqual([]);
      await expect.poll(() => real.flowsOf(gone ?? "")).toEqual([]);
      await expect.poll(() => real.ports()).not.toContain(second);
      expect(await windows.disagreements()).toEqual([]);
    });

    test("the clean-up says that the database is away and goes on the next time; nothing stays", async () => {
      const cleanUp = () =>
        wine.prefix.run(`${executables}/pipette.exe`, {
          args: ["agent", "--cleanup", "--config", node.windows.configFile],
        });
      await node.windows.stop();
      await real.vswitch.stop("ovsdb-server", "SIGKILL");
      node.followsSwitch = false;
      const failed = await cleanUp();
      expect(failed.status).toBe(1);
      expect(failed.stderr).toContain("tcp:127.0.0.1:");
      expect(node.windows.stubs.hns.store.networks.size).toBe(1);
      await real.vswitch.startDatabase();
      node.followsSwitch = true;
      const done = await cleanUp();
      expect(done).toMatchObject({ status: 0, stderr: "" });
      expect(done.stdout).toMatch(/^ovs bridge +bridge "br-int" of Open vSwitch +undone$/m);
      expect([await real.ports(), node.windows.stubs.hns.store.networks.size]).toEqual([[], 0]);
      const { state } = node.windows.host;
      expect([state.nats, state.neighbours, state.adapters.map((entry) => entry["Name"])]).toEqual([
        [],
        [],
        ["Ethernet0"],
      ]);
      expect(existsSync(wine.prefix.unixPath(`${node.windows.dataDir}\\windows-host`))).toBe(false);
      expect(await cleanUp()).toMatchObject({ status: 0, stdout: "nothing on record: there is nothing to clean up\n" });
    });

    test("without its database an agent leaves the node's card alone", async () => {
      const { stubs, host, configFile } = node.windows;
      await real.vswitch.stop("ovsdb-server", "SIGKILL");
      node.followsSwitch = false;
      const acts = host.done.length;
      await using agent = wine.prefix.start(`${executables}/pipette.exe`, { args: ["agent", "--config", configFile] });
      await agent.saying(/there is no connection to .{1,3}tcp:127\.0\.0\.1:/);
      expect([stubs.hns.store.networks.size, host.done.length]).toEqual([0, acts]);
    });
  });
});
