import { afterAll, beforeAll, expect, test } from "vitest";
import { executables } from "../conformance/plugin.ts";
import { addPod } from "../faults/lessons/node-pods.ts";
import { BridgeNode } from "../faults/node/bridge-node.ts";
import type { StressPod } from "../faults/node/stress-node.ts";
import { exactly } from "../faults/storms/exact-pool.ts";
import { startCommand } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";

describeWith("a node whose pool is full, and whose pods are well", ["root", "nft"], () => {
  let node: BridgeNode;
  const pods: StressPod[] = [];

  beforeAll(async () => {
    node = await BridgeNode.start(exactly(2));
    for (const _ of [1, 2]) pods.push(await addPod(node));
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  const pipette = (...words: readonly string[]) =>
    startCommand([...node.machine.prefix, `${executables}/pipette`, ...words, "--socket", node.home.socket], {}, "")
      .ended;

  test("stays ready: a runtime whose STATUS fails has all of them evicted, and the next node filled", async () => {
    expect(await node.status()).toMatchObject({ t: "ok" });
    for (const pod of pods) expect(await node.call("CHECK", pod)).toMatchObject({ t: "ok" });
  });

  test("says so to whom it concerns: to a new pod by its ADD, to people, who may ask for a probe's sake", async () => {
    const pod = await node.makePod();
    expect(await node.call("ADD", pod)).toMatchObject({
      t: "error",
      code: 101,
      message: expect.stringContaining("0 of 2 addresses free"),
    });
    expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
    const told =
      'problem 50 (of new pods only): Cannot give a new pod of network "pods" an address: all 2 addresses of 10.93.0.';
    expect(await pipette("status")).toMatchObject({ status: 1, stdout: expect.stringContaining(told) });
    expect(await pipette("status", "--readiness")).toMatchObject({ status: 0, stdout: expect.stringContaining(told) });
    const problems = [{ code: 50, advisory: true }];
    expect(JSON.parse((await pipette("status", "--json")).stdout)).toMatchObject({ status: { problems } });
  });

  test("is not ready where its pods have no network, however full it is", async () => {
    node.freezeAgent();
    expect(await node.status()).toMatchObject({ t: "error", code: 50 });
    node.thawAgent();
    expect(await node.status()).toMatchObject({ t: "ok" });
    await node.endAgent("SIGTERM");
    expect(await node.status()).toMatchObject({ t: "error", code: 50 });
    expect(await pipette("status", "--readiness")).toMatchObject({ status: 1 });
  });
});
