import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Conversation } from "./lab/conversation.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { linksOf, podPortsOf, SingleNode } from "./single-node.ts";

describeWith("one node with Open vSwitch through restarts", ["root", "openvswitch", "nft"], () => {
  let single: SingleNode;
  let a: LabPod;
  let b: LabPod;

  beforeAll(compileExecutables, 120_000);
  beforeEach(async () => {
    single = await SingleNode.start();
    [a, b] = await Promise.all([single.node.addPod("a"), single.node.addPod("b")]);
  });
  afterEach(() => single?.[Symbol.asyncDispose]());

  const reaches = (): Promise<boolean> => answers(a.namespace, b.address(4), { seconds: 1 });

  test("an agent that is killed over ADDs and DELs leaves nothing double and nothing behind", async () => {
    const { node } = single;
    const before = await stateOf(single);
    for (const [i, afterMs] of [0, 3, 6, 10, 15, 25].entries()) {
      const pod = await unadded(single, `k${i}`);
      const adding = pod.cni("ADD");
      await Bun.sleep(afterMs);
      await node.agent.end("SIGKILL");
      await node.startAgent();
      // By the next agent, whatever the first had done of it.
      expect(await adding, `killed after ${afterMs} ms`).toMatchObject({ status: 0 });
      if (i % 2 === 0) {
        // As a runtime does it that has not heard of it: again, in full.
        await pod.add();
        await pod.check();
        expect(await answers(a.namespace, pod.address(4)), `killed after ${afterMs} ms`).toBe(true);
        const deleting = pod.cni("DEL");
        await Bun.sleep(afterMs / 3);
        await node.agent.end("SIGKILL");
        await deleting;
        await node.startAgent();
      }
      await pod.remove();
      await eventually(async () => JSON.stringify(await stateOf(single)) === JSON.stringify(before), "nothing left");
    }
    expect(await reaches()).toBe(true);
  });

  test("while ovs-vswitchd is dead an ADD fails at once with what is known, and one over a restart waits for it", async () => {
    const { node } = single;
    await node.vswitch.stop("ovs-vswitchd", "SIGKILL");
    // It may be back soon: this one waits, and its end comes from what is known and not from a time of its own.
    const early = await (await unadded(single, "early")).cni("ADD");
    expect(early.status).toBe(1);
    const late = await unadded(single, "late");
    const began = performance.now();
    const { status, stdout } = await late.cni("ADD");
    const tookMs = performance.now() - began;
    for (const answer of [early.stdout, stdout]) {
      expect(JSON.parse(answer).code).toBe(11);
      expect(JSON.parse(answer).msg).toMatch(
        /br-int.mgmt" cannot be reached.*wanted ovs-vswitchd to run.*(systemctl|pgrep)/,
      );
    }
    expect(status).toBe(1);
    // A call that waited for anything of Open vSwitch would wait for two seconds at least.
    expect(tookMs).toBeLessThan(2_000);
    const over = await unadded(single, "over");
    await node.vswitch.startSwitch();
    await eventually(reaches, "the pods to reach each other again");
    await node.vswitch.stop("ovs-vswitchd");
    const adding = over.add();
    await Bun.sleep(500);
    await node.vswitch.startSwitch();
    await adding;
    expect(await answers(a.namespace, over.address(4))).toBe(true);
  });

  test("an agent that starts again lets a connection go on, and finds its pods", async () => {
    using conversation = await Conversation.start(a.namespace, b.namespace, b.address(4));
    const before = await stateOf(single);
    await single.node.agent.end("SIGKILL");
    await conversation.goesOn();
    await single.node.startAgent();
    await conversation.goesOn();
    expect(await stateOf(single)).toEqual(before);
    expect(await single.node.home.containers()).toEqual([a, b].map(({ containerId }) => containerId).sort());
    await Promise.all([a.check(), b.check()]);
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "ovs-vswitchd ends by %s and starts again: pods reach each other, and new ones are added",
    async (signal) => {
      const { node } = single;
      const before = await stateOf(single);
      await node.vswitch.stop("ovs-vswitchd", signal);
      expect(await reaches()).toBe(false);
      await node.vswitch.startSwitch();
      await eventually(reaches, "packets to pass again");
      await eventually(async () => (await node.flows()).length === before.flows, "all flows");
      const pod = await node.addPod("c");
      expect(await answers(a.namespace, pod.address(6))).toBe(true);
      await pod.remove();
      expect(await stateOf(single)).toEqual(before);
    },
  );

  test("while the database is away ADD says so and DEL succeeds; both are right once it is back", async () => {
    const { node } = single;
    const before = await podPortsOf(single);
    await node.vswitch.stop("ovsdb-server");
    const late = await unadded(single, "late");
    const refused = await late.cni("ADD");
    expect(refused.status).not.toBe(0);
    expect(JSON.parse(refused.stdout)).toMatchObject({ code: 11, msg: expect.stringContaining("db.sock") });
    expect((await b.cni("DEL")).status).toBe(0);
    await node.vswitch.startDatabase();
    await eventually(async () => (await podPortsOf(single)).length === before.length - 1, "b's port to go");
    await eventually(async () => (await late.cni("ADD")).status === 0, "ADD to succeed");
    await late.add();
    expect(await answers(a.namespace, late.address(4))).toBe(true);
    expect(await reaches()).toBe(false);
  });

  test("a database that has forgotten everything is told again by the agent that knows, and by one that starts", async () => {
    const { node } = single;
    const before = await stateOf(single);
    for (const isRunning of [true, false]) {
      if (!isRunning) await node.agent.end("SIGTERM");
      await node.vswitch.stop("ovs-vswitchd");
      await node.vswitch.stop("ovsdb-server");
      await node.vswitch.startNewDatabase();
      await node.vswitch.startSwitch();
      if (!isRunning) await node.startAgent();
      await eventually(reaches, "packets to pass again");
      const { ports, flows } = await stateOf(single);
      expect({ ports, flows }).toEqual({ ports: before.ports, flows: before.flows });
    }
  });
});

/** What an agent could leave behind or make twice. */
async function stateOf(single: SingleNode) {
  const [ports, links, flows] = [await podPortsOf(single), await linksOf(single), await single.node.flows()];
  return { ports, links, flows: flows.length };
}

/** A pod with its namespace, for a verb that may come to anything. */
async function unadded({ node }: SingleNode, name: string): Promise<LabPod> {
  const pod = node.pod(name);
  await pod.namespace.ip("link set lo up");
  return pod;
}
