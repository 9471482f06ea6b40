import { afterAll, beforeAll, expect, test } from "vitest";
import { BridgeNode } from "../faults/node/bridge-node.ts";
import type { StressOutcome, StressPod } from "../faults/node/stress-node.ts";
import { networkName } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";

/** As many as one node gets at once where a Deployment is rolled out while its agent is. */
const crowd = 25;

describeWith("an agent that is replaced while pods start", ["root", "nft"], () => {
  let node: BridgeNode;

  beforeAll(async () => {
    node = await BridgeNode.start();
  });
  afterAll(() => node?.[Symbol.asyncDispose]());

  const makePods = async (): Promise<StressPod[]> => {
    const pods: StressPod[] = [];
    for (let i = 0; i < crowd; i++) pods.push(await node.makePod());
    return pods;
  };

  /** All of them have a network of their own, and go. */
  const expectAll = async (pods: readonly StressPod[], outcomes: readonly StressOutcome[]): Promise<void> => {
    expect(outcomes.filter(({ t }) => t !== "ok")).toEqual([]);
    expect(await node.home.containers()).toEqual(pods.map(({ containerId }) => containerId).sort());
    using store = await node.home.store();
    const held = store.list().filter(({ owner, state }) => owner.network === networkName && state === "allocated");
    expect(held).toHaveLength(2 * crowd);
    for (const pod of pods) expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
  };

  test("ADDs that come while none runs wait for the next", async () => {
    const pods = await makePods();
    await node.endAgent("SIGTERM");
    const added = pods.map((pod) => node.call("ADD", pod));
    expect(await Promise.race([...added, Bun.sleep(1_000).then(() => "none")])).toBe("none");
    await node.startAgent();
    await expectAll(pods, await Promise.all(added));
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "ADDs that are on their way when it gets %s all succeed",
    async (signal) => {
      const pods = await makePods();
      const added: Promise<StressOutcome>[] = [];
      const replaced = (async () => {
        await added[0];
        await node.endAgent(signal);
        await node.startAgent();
      })();
      for (const pod of pods) {
        added.push(node.call("ADD", pod));
        await Bun.sleep(20);
      }
      await replaced;
      await expectAll(pods, await Promise.all(added));
    },
  );

  test("an ADD that comes while the agent starts is answered by it once it is ready", async () => {
    const pods = await makePods();
    await node.endAgent("SIGTERM");
    const started = node.startAgent();
    // Again and again: some of them meet the socket before the node is reconciled.
    const added: Promise<StressOutcome>[] = [];
    for (const pod of pods) {
      added.push(node.call("ADD", pod));
      await Bun.sleep(10);
    }
    await started;
    await expectAll(pods, await Promise.all(added));
  });

  test("without any an ADD ends at its deadline, and says where to look", async () => {
    const pod = await node.makePod();
    await node.endAgent("SIGTERM");
    const outcome = await node.call("ADD", pod);
    expect(outcome).toMatchObject({
      t: "error",
      code: 11,
      message: expect.stringContaining("nobody listens (ENOENT), wanted an agent"),
    });
    expect(outcome.ms).toBeGreaterThan(25_000);
    await node.startAgent();
  });
});
