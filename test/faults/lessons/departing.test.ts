import { existsSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { debianPlugins, executables } from "../../conformance/plugin.ts";
import { eventually } from "../../support/agent-process.ts";
import { describeWith } from "../../support/requires.ts";
import { BridgeNode } from "../node/bridge-node.ts";
import type { StressPod } from "../node/stress-node.ts";
import { addPod, callAs, endPod, statesOf, type Wish, wire } from "./node-pods.ts";

/** A DEL waits this long for the agent: short, since most of these have none that answers. */
const delTimeoutMs = 700;
/** As short as it can be: an interface is missed for thirty times as long. */
const janitorIntervalMs = 100;

describeWith("what others lost when a pod went", ["root", "cni-plugins", "nft"], () => {
  let node: BridgeNode;
  let alive: StressPod;

  const begin = async (): Promise<void> => {
    node = await BridgeNode.start({ plugin: { delTimeoutMs }, agent: { janitorIntervalMs } });
    alive = await addPod(node);
  };
  beforeAll(begin);
  beforeEach(async () => {
    if (!node.agentRuns()) await node.startAgent();
  });
  afterEach(async () => {
    try {
      expect(await node.disagreements([alive])).toEqual([]);
      expect(await node.reaches(alive)).toBe(true);
    } catch (caught) {
      // The next test is not to meet what this one left.
      await node[Symbol.asyncDispose]();
      await begin();
      throw caught;
    }
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  /** A DEL that cannot even knock: its word in the database is all that there is, and no call waits in the agent's queue. */
  const unheard = (): Wish => ({ conf: { socket: `${node.machine.directory}/nobody.sock`, delTimeoutMs } });

  test("peers 1: DELs that a frozen agent never heard are finished once it thaws, by the same process", async () => {
    const pods = [await addPod(node), await addPod(node), await addPod(node)];
    const { pid } = node.agent;
    node.freezeAgent();
    try {
      for (const [i, pod] of pods.entries()) {
        expect(await callAs(node, "DEL", pod, i === 0 ? { conf: { delTimeoutMs } } : unheard())).toMatchObject({
          t: "ok",
        });
        await node.removePod(pod);
        expect(await statesOf(node, pod)).toEqual(["releasing", "releasing"]);
      }
    } finally {
      node.thawAgent();
    }
    for (const pod of pods)
      await eventually(async () => (await statesOf(node, pod)).join() === "cooling,cooling", "the addresses to cool");
    expect([node.agentRuns(), node.agent.pid]).toEqual([true, pid]);
  });

  test("peers 1: the same where another IPAM plugin has the addresses, and no lease can say it", async () => {
    const ranges = [[{ subnet: "10.92.200.0/24" }]];
    const dataDir = `${node.machine.directory}/host-local`;
    const conf = { cniVersion: "1.0.0", ipam: { type: "host-local", ranges, dataDir } };
    const pod = await addPod(node, { conf, path: debianPlugins });
    node.freezeAgent();
    try {
      const wish = { conf: { ...conf, ...unheard().conf }, path: debianPlugins };
      expect(await callAs(node, "DEL", pod, wish)).toMatchObject({ t: "ok" });
    } finally {
      node.thawAgent();
    }
    await eventually(async () => !(await node.home.containers()).includes(pod.containerId), "the interface to go");
    await node.removePod(pod);
    using store = await node.home.store();
    await eventually(() => store.pendingDetaches().length === 0, "the pending detach to be struck off");
  });

  test("peers 6: a DEL that a missing plugin of the chain keeps from us: the leases end with the interfaces", async () => {
    // Ours has succeeded, the next one cannot be found: neither for ADD, nor for DEL, which begins with it. Then some
    // runtimes forget the sandbox, and make another one for the same pod.
    const pods = [await addPod(node), await addPod(node), await addPod(node)];
    for (const pod of pods.slice(0, 2)) await node.removePod(pod);
    // An agent that starts meanwhile has seen these interfaces no more.
    await node.endAgent("SIGKILL");
    await node.startAgent();
    const [, , last] = pods;
    if (last !== undefined) await node.removePod(last);
    for (const pod of pods) expect(await statesOf(node, pod)).toEqual(["allocated", "allocated"]);
    for (const pod of pods)
      await eventually(async () => (await statesOf(node, pod)).join() === "cooling,cooling", "the lost leases to end");
    // Late as it is, it does no harm.
    for (const pod of pods) expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
  });

  test("peers 8: a late DEL of the sandbox before takes nothing from the one that has its address and pod now", async () => {
    const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=db-0;IP=10.92.77.77";
    const before = await addPod(node, { args });
    expect(before.addresses[0]).toBe("10.92.77.77");
    await endPod(node, before);
    const after = await addPod(node, { args });
    expect(after.addresses[0]).toBe("10.92.77.77");
    // Once heard by the agent, and once left on record while there is none.
    expect(await callAs(node, "DEL", before, { args })).toMatchObject({ t: "ok" });
    await node.endAgent("SIGKILL");
    expect(await callAs(node, "DEL", before, { args })).toMatchObject({ t: "ok" });
    await node.startAgent();
    expect(await node.disagreements([alive, after])).toEqual([]);
    expect(await node.reaches(after)).toBe(true);
    await endPod(node, after);
  });

  test("peers 9: an agent that remembers nothing of a pod takes it down", async () => {
    const pods = [await addPod(node), await addPod(node)];
    await node.endAgent("SIGKILL");
    await node.startAgent();
    for (const pod of pods) {
      expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
      // Without a word to the janitor: the DEL itself has done it.
      expect(await statesOf(node, pod)).toEqual(["cooling", "cooling"]);
      expect(await node.home.containers()).not.toContain(pod.containerId);
      await node.removePod(pod);
    }
  });

  test.each(["with the agent", "without it"])("peers 11: what is not there is deleted, %s", async (how) => {
    const never = await node.makePod();
    const twice = await addPod(node);
    const bare = await addPod(node);
    await endPod(node, twice);
    await node.removePod(bare);
    await node.removePod(never);
    if (how === "without it") await node.endAgent("SIGTERM");
    const unusable = { ipam: { type: "pipette-ipam", dataDir: node.home.dataDir, ranges: [[{ subnet: "no" }]] } };
    const unknown = { prevResult: { cniVersion: "1.1.0", ips: "none", interfaces: 7 } };
    for (const pod of [never, twice, bare]) {
      for (const conf of [{}, unusable, unknown, { name: "removed-network" }])
        expect(await callAs(node, "DEL", pod, { conf }), JSON.stringify(conf)).toMatchObject({ t: "ok" });
      expect(await callAs(node, "DEL", { ...pod, netns: "" })).toMatchObject({ t: "ok" });
    }
    if (how === "without it") await node.startAgent();
  });

  test("peers 13: pods end while the agent is gone for good, and its file and executables stay for that", async () => {
    const pods = [await addPod(node), await addPod(node), await addPod(node)];
    await node.endAgent("SIGTERM");
    expect([existsSync(node.home.conflist), existsSync(`${executables}/pipette`)]).toEqual([true, true]);
    for (const pod of pods) await endPod(node, pod);
    // Meanwhile the runtime hears why it gets no new pods, and that it may come again.
    expect(await node.status()).toMatchObject({ t: "error", code: 50 });
    const early = await node.makePod();
    expect(await callAs(node, "ADD", early, { conf: { addTimeoutMs: 500 } })).toMatchObject({ t: "error", code: 11 });
    for (const pod of pods) expect(await statesOf(node, pod)).toEqual(["releasing", "releasing"]);
    await node.startAgent();
    for (const pod of pods) expect(await statesOf(node, pod)).toEqual(["cooling", "cooling"]);
    await wire(node, early);
    await endPod(node, early);
  });
});
