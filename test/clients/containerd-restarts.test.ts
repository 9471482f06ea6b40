import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { ContainerdNode } from "./containerd-node.ts";
import { Pinging } from "./pinging.ts";

describeWith(
  "restarts under live pods of containerd",
  ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft"],
  () => {
    let node: ContainerdNode;

    beforeAll(async () => {
      node = await ContainerdNode.start();
    });
    beforeEach(async () => {
      // A test that failed may have left the node without an agent.
      await node.base.home.status().catch(() => node.startAgent());
    });
    afterEach(async () => {
      try {
        await node?.agrees();
      } finally {
        await node?.clear();
      }
      await node?.agrees();
    });
    afterAll(async () => {
      await node?.[Symbol.asyncDispose]();
    });

    const twoPods = async () => {
      const [a, b] = [await node.cri.runPod("a"), await node.cri.runPod("b")];
      return { a, b, statusA: await node.cri.podStatus(a), addressB: (await node.cri.podStatus(b)).addresses[0] ?? "" };
    };

    /** Two pods, and pings from one to the other until told otherwise. */
    const talkingPods = async () => {
      const pods = await twoPods();
      return { ...pods, pinging: Pinging.start(node.base.node, pods.statusA.netns, pods.addressB) };
    };

    const leaseStates = async (id: string): Promise<string[]> => {
      using store = await node.base.home.store();
      return store
        .list()
        .filter(({ owner }) => owner.sandboxId === id)
        .map(({ state }) => state);
    };

    test("containerd killed: pods talk on and keep their addresses, and end as ever", async () => {
      const { a, b, statusA, pinging } = await talkingPods();
      await node.containerd.kill("SIGKILL");
      await pinging.answered(10);
      await node.containerd.restart();
      expect(await node.cri.podStatus(a)).toEqual(statusA);
      expect(await pinging.stop()).toMatchObject({ lost: 0 });
      await node.agrees();
      await node.cri.endPod(a);
      await node.cri.endPod(b);
    });

    const signals = ["SIGKILL", "SIGTERM"] as const;
    test.each(signals)("the agent ended by %s: pods talk on, new ones come, all end as ever", async (signal) => {
      const { a, b, addressB, pinging } = await talkingPods();
      await node.agent.end(signal);
      await pinging.answered(10);
      await node.startAgent();
      await node.agrees();
      const c = await node.cri.runPod("c");
      const { netns } = await node.cri.podStatus(c);
      expect(await node.base.node.ping(netns, addressB)).toBe(true);
      expect(await pinging.stop()).toMatchObject({ lost: 0 });
      for (const id of [a, b, c]) await node.cri.endPod(id);
    });

    test("the agent stopped while a pod ends: Stop and Remove succeed, a new pod waits, the next agent finishes", async () => {
      const { a, b } = await twoPods();
      await node.agent.end("SIGTERM");
      // Its file stays, so the runtime stays ready: each ADD gets its own answer.
      expect(await node.cri.networkProblem()).toBeUndefined();
      await node.cri.endPod(a);
      expect(await leaseStates(a)).toEqual(["releasing", "releasing"]);
      const early = node.cri.runPod("early");
      await Bun.sleep(1_000);
      await node.startAgent();
      const c = await early;
      expect([...(await node.cri.pods()).keys()].sort()).toEqual([b, c].sort());
      await node.agrees();
      expect(await leaseStates(a)).toEqual(["cooling", "cooling"]);
    });

    test("the agent frozen while a pod ends: Stop succeeds at the deadline, and the thawed agent finishes", async () => {
      const { a, addressB } = await twoPods();
      node.agent.signal("SIGSTOP");
      try {
        await node.cri.stopPod(a);
        expect(await leaseStates(a)).toEqual(["releasing", "releasing"]);
        expect((await node.cri.podStatus(a)).state).toBe("SANDBOX_NOTREADY");
        expect(await node.base.node.ping(undefined, addressB)).toBe(true);
      } finally {
        node.agent.signal("SIGCONT");
      }
      await node.agrees();
      expect(await leaseStates(a)).toEqual(["cooling", "cooling"]);
      await node.cri.removePod(a);
    });

    test("the agent frozen while a pod ends, and then killed: the next agent finishes", async () => {
      const { a } = await twoPods();
      node.agent.signal("SIGSTOP");
      try {
        await node.cri.stopPod(a);
      } finally {
        await node.agent.end("SIGKILL");
      }
      await node.cri.removePod(a);
      expect(await leaseStates(a)).toEqual(["releasing", "releasing"]);
      await node.startAgent();
      await node.agrees();
      expect(await leaseStates(a)).toEqual(["cooling", "cooling"]);
    });
  },
);
