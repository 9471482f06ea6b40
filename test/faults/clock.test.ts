import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { BridgeNode } from "./node/bridge-node.ts";
import { addressesOf } from "./node/runtime-call.ts";
import { dayMs, type SteppedClock } from "./node/stepped-clock.ts";
import type { StressPod } from "./node/stress-node.ts";

/** Long enough for a busy machine, short enough to wait for. */
const timeoutMs = 1_500;

describeWith("faults: the clock is set while the agent runs, by a day", ["root", "gcc", "nft", "strace"], () => {
  let node: BridgeNode;
  let clock: SteppedClock;

  beforeAll(async () => {
    const plugin = { addTimeoutMs: timeoutMs, delTimeoutMs: timeoutMs };
    // As many addresses as a test has pods at a time.
    node = await BridgeNode.start({ clock: true, plugin, subnets: ["10.92.7.0/29"] });
    clock = node.clock;
  });
  afterAll(async () => node?.[Symbol.asyncDispose]());

  const added = async (): Promise<StressPod> => {
    const pod = await node.makePod();
    await addAgain(pod);
    return pod;
  };
  const addAgain = async (pod: StressPod): Promise<void> => {
    const outcome = await node.call("ADD", pod);
    expect(outcome).toMatchObject({ t: "ok" });
    pod.result = "result" in outcome ? outcome.result : undefined;
    pod.addresses = addressesOf(pod.result);
  };
  const deleted = async (pod: StressPod): Promise<void> => {
    expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
    await node.removePod(pod);
  };

  for (const [where, ms] of [
    ["back", -dayMs],
    ["forward", dayMs],
  ] as const) {
    test(`${where}: every verb works as before, for pods from before and for new ones, in a pool that is full`, async () => {
      const before = [await added(), await added(), await added(), await added(), await added()];
      await clock.step(ms);
      for (const pod of before) {
        expect(await node.call("CHECK", pod)).toMatchObject({ t: "ok" });
        await deleted(pod);
        // The only address that anybody could get is one that cools.
        const next = await added();
        expect(await node.reaches(next)).toBe(true);
        expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
        expect(await node.reaches(next)).toBe(true);
        before.push(next);
        if (before.length > 6) break;
      }
      const standing = before.slice(-5);
      expect(await node.problems()).toEqual([expect.stringContaining("are taken")]);
      expect(await node.gc(standing)).toMatchObject({ t: "ok" });
      await deleted(standing[4] as StressPod);
      expect(await node.disagreements(standing.slice(0, 4))).toEqual([]);
      for (const pod of standing.slice(0, 4)) await deleted(pod);
    });

    test(`${where}, between a call's start and its answer: the ADD and the DEL are done all the same`, async () => {
      const pod = await node.makePod();
      node.freezeAgent();
      const adding = node.call("ADD", pod);
      await Bun.sleep(300);
      await clock.step(ms);
      node.thawAgent();
      const outcome = await adding;
      expect(outcome).toMatchObject({ t: "ok" });
      pod.addresses = addressesOf("result" in outcome ? outcome.result : undefined);
      node.freezeAgent();
      const deleting = node.call("DEL", pod);
      await Bun.sleep(300);
      await clock.step(-ms);
      node.thawAgent();
      expect(await deleting).toMatchObject({ t: "ok" });
      await node.removePod(pod);
      // Done, and not only put on record.
      expect(node.agentLog().join("\n")).toMatch(/"verb":"DEL"[^\n]*"outcome":"ok"/);
      expect(await node.disagreements([])).toEqual([]);
    });

    test(`${where}, while the agent is frozen: what was given up stays so, and no pod of now is touched`, async () => {
      const pod = await added();
      const late = await node.makePod();
      node.freezeAgent();
      const [gone, deleting] = [node.call("ADD", late), node.call("DEL", pod)];
      await Bun.sleep(300);
      await clock.step(ms);
      expect(await gone).toMatchObject({ t: "error", code: 11 });
      expect(await deleting).toMatchObject({ t: "ok" });
      // The runtime adds the same sandbox again, before the agent has heard of its DEL.
      const again = node.call("ADD", pod);
      await Bun.sleep(300);
      node.thawAgent();
      const outcome = await again;
      expect(outcome).toMatchObject({ t: "ok" });
      pod.result = "result" in outcome ? outcome.result : undefined;
      pod.addresses = addressesOf(pod.result);
      await eventually(async () => (await node.home.status()).departing === 0, "nothing on record");
      expect(await node.home.containers()).toEqual([pod.containerId]);
      expect(await node.reaches(pod)).toBe(true);
      await node.removePod(late);
      expect(await node.disagreements([pod])).toEqual([]);
      await deleted(pod);
    });

    test(`${where}: an ADD of a pod that stands, given up in a frozen agent, costs it nothing`, async () => {
      const pod = await added();
      await clock.step(ms);
      node.freezeAgent();
      expect(await node.call("ADD", pod)).toMatchObject({ t: "error", code: 11 });
      node.thawAgent();
      await eventually(async () => (await node.home.status()).departing === 0, "nothing on record");
      expect(await node.reaches(pod)).toBe(true);
      expect(await node.call("CHECK", pod)).toMatchObject({ t: "ok" });
      expect(await node.disagreements([pod])).toEqual([]);
      await deleted(pod);
    });
  }
});
