import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { IpamClient } from "../../ipam/service/ipam-client.ts";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { networkName } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { earlierExecutables, earlierModule } from "./earlier-release.ts";
import { UpgradeNode } from "./upgrade-node.ts";

/** An upgrade replaces the plugin before the agent, a way back may do it the other way round; either lasts a moment, or long. */
describeWith("plugin and agent of different releases", ["root", "earlier-release"], () => {
  let earlier: string;
  let node: UpgradeNode;

  beforeAll(async () => {
    compileExecutables();
    earlier = await earlierExecutables("linux");
  });
  beforeEach(async () => {
    node = await UpgradeNode.withBridge();
  });
  afterEach(() => node?.[Symbol.asyncDispose]());

  describe.each(["the earlier agent, the plugin of now", "the agent of now, the earlier plugin"])("%s", (name) => {
    const agentIsEarlier = name.startsWith("the earlier");
    const agent = () => (agentIsEarlier ? earlier : executables);
    const plugin = () => (agentIsEarlier ? executables : earlier);

    test("every verb does what it does between two of one release", async () => {
      await node.runAgent(agent());
      const [a, b] = await node.addPods(plugin(), ["a", "b"]);
      if (a === undefined || b === undefined) throw new Error("Two pods were to be added");
      const added = structuredClone(a.result);
      expect(added.ips.map(({ address }) => address)).toEqual([
        expect.stringMatching(/^10\.78\.0\.\d+\/16$/),
        expect.stringMatching(/^fd78::[0-9a-f]+\/64$/),
      ]);
      expect(await node.add(plugin(), a)).toEqual(added);
      await node.check(plugin(), a);
      expect((await node.whole(plugin(), "STATUS")).stdout).toBe("");
      expect(await node.whole(plugin(), "GC", [a])).toMatchObject({ status: 0, stdout: "" });
      expect(await node.home.containers()).toEqual([a.containerId]);
      await expect(node.check(plugin(), b)).rejects.toThrow(/"code":103|"code":101/);
      await node.remove(plugin(), b);
      await node.remove(plugin(), a);
      expect(await node.home.containers()).toEqual([]);
      // Code and sentence of a refusal come through as well.
      await expect(node.check(plugin(), a)).rejects.toThrow(/Cannot confirm/);
    });

    test("a DEL that the agent did not hear is finished by it at its start", async () => {
      await node.runAgent(agent());
      const pod = await node.addPod(plugin(), "a");
      await node.agent.end("SIGKILL");
      await node.remove(plugin(), pod);
      await node.home.start();
      expect(await node.home.containers()).toEqual([]);
      using store = await node.home.store();
      expect(store.list().map(({ state }) => state)).toEqual(["cooling", "cooling"]);
    });
  });

  test("the commands and the client of now ask the earlier agent", async () => {
    await node.runAgent(earlier);
    const pod = await node.addPod(earlier, "a");
    const { status, stdout } = await node.pipette(executables, "status", "--socket", node.home.socket, "--json");
    expect([status, JSON.parse(stdout)]).toMatchObject([0, { leases: [{}, {}], status: { problems: [] } }]);
    using client = new IpamClient(node.home.socket);
    const leases = await Array.fromAsync(client.list(networkName));
    expect(leases.map(({ containerId }) => containerId)).toEqual([pod.containerId, pod.containerId]);
    const configuration = { cniVersion: "1.1.0", name: networkName };
    const attachment = { network: networkName, containerId: "alone", ifname: "eth0" };
    const { leases: given } = await client.allocate({ ...attachment, configuration });
    expect(given).toHaveLength(2);
    expect(await client.release(attachment)).toHaveLength(2);
    expect(await client.check()).toEqual([]);
  });

  test("the earlier commands and the earlier client ask the agent of now", async () => {
    await node.runAgent(executables);
    const pod = await node.addPod(executables, "a");
    const earlierClient: typeof IpamClient = (await import(earlierModule("ipam/service/ipam-client.ts"))).IpamClient;
    using client = new earlierClient(node.home.socket);
    const held = await client.get({ network: networkName, containerId: pod.containerId, ifname: "eth0" });
    expect(held.map(({ address }) => address)).toEqual(pod.result.ips.map(({ address }) => address));
    expect(await Array.fromAsync(client.list(networkName))).toEqual(held);
    const { status, stdout } = await node.pipette(earlier, "status", "--socket", node.home.socket, "--json");
    expect([status, JSON.parse(stdout)]).toMatchObject([0, { leases: [{}, {}], status: { problems: [] } }]);
    for (const command of ["list", "stats", "check"]) {
      const words = ["ipam", command, "--data-dir", node.home.dataDir, ...(command === "list" ? ["--json"] : [])];
      expect(await node.pipette(earlier, ...words)).toMatchObject({ status: 0 });
    }
  });

  test("the doctor finds of an earlier agent's node only what that does not do yet, and says who has to be started anew", async () => {
    await node.runAgent(earlier);
    const pod = await node.addPod(earlier, "a");
    const doctor = (...words: readonly string[]) =>
      node.pipette(executables, "doctor", "--config", node.home.configFile, "--once", ...words);
    const found = await doctor();
    expect(found).toMatchObject({ status: 1, stdout: expect.stringContaining("1 error, 0 warnings, 0 notes") });
    expect(found.stdout).toContain("packet rules stand in the table");
    await node.namespace.ip(`link del ${pod.result.interfaces[1]?.name}`);
    const { status, stdout } = await doctor("--repair");
    expect([status, stdout]).toEqual([1, expect.stringContaining("the one that runs is of an earlier release")]);
    await node.runAgent(executables);
    await doctor("--repair");
    expect(await doctor()).toMatchObject({ status: 0, stdout: expect.stringContaining("all agree") });
  });
});
