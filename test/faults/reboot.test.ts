import { afterEach, beforeEach, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { boot } from "./kinds/node.ts";
import { BridgeNode } from "./node/bridge-node.ts";
import { addressesOf } from "./node/runtime-call.ts";
import type { StressPod } from "./node/stress-node.ts";

/** What 10.92.7.0/29 has beside its gateway. */
const addresses = 5;

describeWith("faults: the node reboots, with as many addresses as pods (peers 5)", ["root", "nft"], () => {
  let node: BridgeNode;
  let old: readonly StressPod[];

  beforeEach(async () => {
    node = await BridgeNode.start({ subnets: ["10.92.7.0/29"] });
    old = await addMany();
  });
  afterEach(async () => node?.[Symbol.asyncDispose]());

  async function addMany(): Promise<readonly StressPod[]> {
    const pods = await Promise.all(Array.from({ length: addresses }, () => node.makePod()));
    const outcomes = await Promise.all(pods.map((pod) => node.call("ADD", pod)));
    for (const [i, outcome] of outcomes.entries()) {
      expect(outcome, JSON.stringify(outcome)).toMatchObject({ t: "ok" });
      const pod = pods[i] as StressPod;
      pod.result = outcome.t === "ok" ? outcome.result : undefined;
      pod.addresses = addressesOf(pod.result);
    }
    expect(new Set(pods.flatMap((pod) => pod.addresses)).size).toBe(addresses);
    return pods;
  }

  async function rebooted(): Promise<void> {
    await node.endAgent("SIGKILL");
    await boot(node);
    await node.startAgent();
    // Else the runtime would make no pod.
    expect(await node.status()).toMatchObject({ t: "ok" });
  }

  async function expectOnly(pods: readonly StressPod[]): Promise<void> {
    for (const pod of pods) expect(await node.reaches(pod)).toBe(true);
    // One goes, since a node without a free address is right to say so.
    const [last] = pods.slice(-1) as [StressPod];
    expect(await node.call("DEL", last)).toMatchObject({ t: "ok" });
    await node.removePod(last);
    expect(await node.disagreements(pods.slice(0, -1))).toEqual([]);
  }

  test("new pods come at once, before any DEL of the old ones, which then touch nobody", async () => {
    await rebooted();
    const pods = await addMany();
    for (const pod of old) expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
    await expectOnly(pods);
  });

  test("a sandbox that comes back under its own name has its own addresses again, whatever others want", async () => {
    await rebooted();
    const [back, ...gone] = old as [StressPod, ...StressPod[]];
    await node.machine.run(`ip netns add ${back.netns.slice(back.netns.lastIndexOf("/") + 1)}`);
    const others = await Promise.all(gone.map(() => node.makePod()));
    const again = await node.call("ADD", back);
    expect(again.t === "ok" && addressesOf(again.result)).toEqual(back.addresses);
    const outcomes = await Promise.all(others.map((pod) => node.call("ADD", pod)));
    for (const [i, outcome] of outcomes.entries()) {
      expect(outcome, JSON.stringify(outcome)).toMatchObject({ t: "ok" });
      const pod = others[i] as StressPod;
      pod.result = outcome.t === "ok" ? outcome.result : undefined;
      pod.addresses = addressesOf(pod.result);
    }
    for (const pod of gone) expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
    await expectOnly([back, ...others]);
  });
});
