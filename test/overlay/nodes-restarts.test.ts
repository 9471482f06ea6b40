import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { Conversation } from "./lab/conversation.ts";
import { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";

/**
 * Whatever ends on a node and comes again: connections that are open stay so, and pods come and go as before. In user
 * space packets wait for the switch, and the switch waits for its database, for up to 15 s.
 */
describeWith("what a node's pods notice of its daemons' ends", ["root", "openvswitch", "nft", "etcd"], () => {
  let scratch: ReturnType<typeof scratchDir>;
  let lab: Lab;
  let node: LabNode;
  let pods: readonly LabPod[];
  let talks: readonly Conversation[];
  let added = 0;

  beforeAll(async () => {
    compileExecutables();
    scratch = scratchDir();
    const file = join(scratch.path, "services.json");
    writeFileSync(file, JSON.stringify({ services: [] }));
    lab = await Lab.start({ nodes: ["a", "a"], ovs: { services: { file } } });
    node = lab.node(1);
    pods = await Promise.all([node.addPod("web"), node.addPod("db"), lab.node(2).addPod("far")]);
    const [web, db, far] = pods as [LabPod, LabPod, LabPod];
    talks = await Promise.all([
      Conversation.start(web.namespace, far.namespace, far.address(4)),
      Conversation.start(far.namespace, db.namespace, db.address(6)),
      Conversation.start(db.namespace, web.namespace, web.address(4)),
    ]);
  });
  beforeEach(() => allGoOn());
  afterAll(async () => {
    for (const talk of talks ?? []) talk[Symbol.dispose]();
    await lab?.[Symbol.asyncDispose]();
    scratch?.[Symbol.dispose]();
  });

  const allGoOn = async (): Promise<void> => void (await Promise.all(talks.map((talk) => talk.goesOn())));

  /** The node is whole: a new pod reaches another node's and goes again, and the others are as they were. */
  async function expectWhole(): Promise<void> {
    await allGoOn();
    const pod = await node.addPod(`new${++added}`);
    const far = pods.at(-1) as LabPod;
    for (const address of far.addresses)
      await eventually(() => answers(pod.namespace, address, { seconds: 1 }), "an answer to the new pod");
    await pod.remove();
    for (const each of pods) await each.check();
  }

  test("the agent is killed: its pods talk on without it, and it finds them again", async () => {
    await node.agent.end("SIGKILL");
    await allGoOn();
    await node.startAgent();
    await expectWhole();
  });

  test("the agent ends in peace: the same", async () => {
    expect(await node.agent.end("SIGTERM")).toBe(0);
    await allGoOn();
    await node.startAgent();
    await expectWhole();
  });

  test("ovs-vswitchd is killed: the agent gives the new one all its flows", async () => {
    await node.vswitch.stop("ovs-vswitchd", "SIGKILL");
    await node.vswitch.startSwitch();
    await expectWhole();
  });

  test("ovs-vswitchd exits: the same", async () => {
    await node.vswitch.switchControl("exit");
    await node.vswitch.stop("ovs-vswitchd");
    await node.vswitch.startSwitch();
    await expectWhole();
  });

  test("ovsdb-server is killed: what is asked for meanwhile waits for the next one", async () => {
    await node.vswitch.stop("ovsdb-server", "SIGKILL");
    await node.vswitch.startDatabase();
    await expectWhole();
  });

  test("all three end at once, as if the power had failed", async () => {
    await Promise.all([
      node.agent.end("SIGKILL"),
      node.vswitch.stop("ovs-vswitchd", "SIGKILL"),
      node.vswitch.stop("ovsdb-server", "SIGKILL"),
    ]);
    await node.vswitch.startDatabase();
    await node.vswitch.startSwitch();
    await node.startAgent();
    await expectWhole();
  });
});
