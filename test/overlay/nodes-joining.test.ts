import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Conversation } from "./lab/conversation.ts";
import { Lab } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { knowsSubnetOf } from "./lab/traces.ts";

/** Nodes come and go, and so does etcd, while pods of two nodes talk without a break. */
describeWith("nodes that join and leave under traffic", ["root", "openvswitch", "nft", "etcd"], () => {
  let lab: Lab;
  let web: LabPod;
  let db: LabPod;
  let talk: Conversation;
  let added = 0;

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"], registryMembers: 3 });
    [web, db] = await Promise.all([lab.node(1).addPod("web"), lab.node(2).addPod("db")]);
    talk = await Conversation.start(web.namespace, db.namespace, db.address(4));
  });
  afterAll(async () => {
    talk?.[Symbol.dispose]();
    await lab?.[Symbol.asyncDispose]();
  });

  async function join(): Promise<{ readonly node: LabNode; readonly pod: LabPod }> {
    const node = await lab.addNode("a");
    await node.startAgent();
    // An address that the kernel still tries out is of no use to what it forwards.
    expect(await node.namespace.run("ip -6 address show dev pipette-gw0 tentative")).toBe("");
    return { node, pod: await node.addPod("new") };
  }

  async function expectReached(pod: LabPod): Promise<void> {
    for (const from of [web, db])
      for (const address of pod.addresses)
        await eventually(() => answers(from.namespace, address, { seconds: 1 }), `an answer of ${pod.name}`);
  }

  /** A new pod on a node that is there already. */
  async function expectNewPods(): Promise<void> {
    const pod = await lab.node(1).addPod(`more${++added}`);
    await expectReached(pod);
    await pod.remove();
  }

  test("a node that joins is reached by every other, and reaches them", async () => {
    const { pod } = await join();
    await expectReached(pod);
    for (const to of [web, db])
      for (const address of to.addresses) expect(await answers(pod.namespace, address)).toBe(true);
    await talk.goesOn();
  });

  test("one that is released is forgotten by every other: no flow, no route", async () => {
    const left = lab.node(3);
    const [pod] = [...left.pods] as [LabPod];
    const nodes = [lab.node(1), lab.node(2)];
    const knows = (node: LabNode): Promise<boolean> => knowsSubnetOf(node, pod.address(4));
    expect(await Promise.all(nodes.map(knows))).toEqual([true, true]);
    await left.agent.end();
    await lab.node(1).pipette("nodes", "release", left.name, "--config", lab.node(1).home.configFile);
    for (const node of nodes) await eventually(async () => !(await knows(node)), `${node.name} to forget ${left.name}`);
    await lab.removeNode(left);
    await talk.goesOn();
  });

  test("a member of the registry is killed: nobody notices", async () => {
    await lab.etcd.signal(0, "SIGKILL");
    await expectNewPods();
    const { pod } = await join();
    await expectReached(pod);
    await lab.etcd.startMember(0);
  });

  test("the registry is gone: pods talk, new ones come, and an agent starts from what it knew", async () => {
    for (const i of [0, 1, 2]) await lab.etcd.signal(i, "SIGKILL");
    await expectNewPods();
    await lab.node(1).agent.end("SIGKILL");
    await talk.goesOn();
    await lab.node(1).startAgent();
    await expectNewPods();
    await talk.goesOn();
  });

  test("when it is back, nodes can join again", async () => {
    await Promise.all([0, 1, 2].map((i) => lab.etcd.startMember(i)));
    const { pod } = await join();
    await expectReached(pod);
    expect(talk.ended).toBeUndefined();
  });
});
