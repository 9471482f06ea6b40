import { afterEach, expect, test } from "vitest";
import { eventually } from "../../support/agent-process.ts";
import { describeWith } from "../../support/requires.ts";
import { boot } from "../kinds/node.ts";
import { BridgeNode, type BridgeNodeOptions } from "../node/bridge-node.ts";
import type { StressPod } from "../node/stress-node.ts";
import { HeldWay } from "./held-way.ts";
import { addPod, callAs, endPod, gcBy, statesOf, wire } from "./node-pods.ts";

/** Five addresses for pods. */
const subnets = ["10.92.0.0/29"];
const anHour = 3_600_000;

describeWith("who gets an address next", ["root", "nft"], () => {
  let node: BridgeNode | undefined;
  afterEach(async () => {
    await node?.[Symbol.asyncDispose]();
    node = undefined;
  });
  const start = async (options: BridgeNodeOptions): Promise<BridgeNode> => {
    node = await BridgeNode.start(options);
    return node;
  };
  const addPods = async (on: BridgeNode, count: number): Promise<StressPod[]> => {
    const pods: StressPod[] = [];
    while (pods.length < count) pods.push(await addPod(on));
    return pods;
  };
  const addressOf = ({ addresses }: StressPod): string => addresses[0] ?? "";

  test("peers 2: a GC whose list was made before a pod came leaves it alone, and takes who is really gone", async () => {
    const on = await start({});
    const [kept, stale] = [await addPod(on), await addPod(on)];
    // What the runtime knew is on its way to the agent while another pod comes.
    using way = new HeldWay(`${on.machine.directory}/held.sock`, on.home.socket);
    const gc = gcBy(on, [kept], way.path);
    await way.taken;
    const young = await addPod(on);
    way.release();
    expect(await gc).toMatchObject({ t: "ok" });
    expect(await statesOf(on, young)).toEqual(["allocated", "allocated"]);
    expect(await statesOf(on, stale)).toEqual(["cooling", "cooling"]);
    await on.removePod(stale);
    expect(await on.disagreements([kept, young])).toEqual([]);
    expect(await on.reaches(young)).toBe(true);
  });

  test("peers 5: after a reboot no lease is given away at once, none is lost to its owner, and DELs of then free theirs", async () => {
    const on = await start({ subnets, agent: { cooldownMs: anHour } });
    const [same, deleted, forgotten] = await addPods(on, 3);
    if (same === undefined || deleted === undefined || forgotten === undefined) throw new Error("there are three");
    await on.endAgent("SIGKILL");
    await boot(on);
    await on.startAgent();
    expect(on.agent.lines.map(({ message }) => message)).toContainEqual(
      expect.stringContaining("the node has booted since"),
    );
    // podman starts a container again under its id, in a new namespace.
    const again = { ...(await on.makePod()), containerId: same.containerId };
    await wire(on, again);
    expect(again.addresses).toEqual(same.addresses);
    // The kubelet ends the sandboxes of then before it makes new ones.
    expect(await on.call("DEL", deleted)).toMatchObject({ t: "ok" });
    expect(await statesOf(on, deleted)).toEqual(["cooling"]);
    expect(await statesOf(on, forgotten)).toEqual(["allocated"]);
    // Two that were free, then the one that cools; nobody gets what the sandbox had of which nothing was heard yet.
    const fresh = await addPods(on, 3);
    expect(fresh.map(addressOf)).not.toContain(addressOf(forgotten));
    expect(fresh.map(addressOf)).toContain(addressOf(deleted));
    // Only where nothing else is left: its sandbox cannot have outlived the boot, and no source knows it.
    const last = await addPod(on);
    expect(addressOf(last)).toBe(addressOf(forgotten));
    expect(await on.call("ADD", await on.makePod())).toMatchObject({ t: "error", code: 101 });
    for (const pod of [again, ...fresh, last]) expect(await on.reaches(pod)).toBe(true);
  });

  test("peers 6: sandboxes that went without a DEL starve nobody: who finds no address finds theirs when it comes again", async () => {
    // Its looks are far apart, and an interface would be missed for minutes.
    const on = await start({ subnets, agent: { janitorIntervalMs: 2_000 } });
    const [alive, ...lost] = await addPods(on, 5);
    for (const pod of lost) await on.removePod(pod);
    const heir = await on.makePod();
    expect(await on.call("ADD", heir)).toMatchObject({ t: "error", code: 101 });
    await eventually(async () => (await on.call("ADD", heir)).t === "ok", "an address for the next pod");
    await wire(on, heir);
    expect(lost.map(addressOf)).toContain(addressOf(heir));
    for (const pod of [alive, heir]) expect(pod && (await on.reaches(pod))).toBe(true);
  });

  test("peers 18: cooling outlasts the agent's end, and gives way to need, the oldest first", async () => {
    const on = await start({ subnets, agent: { cooldownMs: anHour } });
    const [a, b, c] = await addPods(on, 3);
    if (a === undefined || b === undefined || c === undefined) throw new Error("there are three");
    for (const pod of [b, a]) await endPod(on, pod);
    await on.endAgent("SIGKILL");
    await on.startAgent();
    const free = await addPods(on, 2);
    for (const pod of free) expect([addressOf(a), addressOf(b)]).not.toContain(addressOf(pod));
    // Nothing else is left, and still the node is ready: what has cooled longest comes first.
    expect(await on.status()).toMatchObject({ t: "ok" });
    expect((await addPods(on, 2)).map(addressOf)).toEqual([addressOf(b), addressOf(a)]);
    expect(await on.problems()).toEqual([expect.stringContaining("are taken")]);
    expect(await on.call("ADD", await on.makePod())).toMatchObject({ t: "error", code: 101 });
  });

  test("peers 19: an address that is asked for and held by a dead container: its holder is named, then it is given", async () => {
    const on = await start({ subnets });
    const args = "IgnoreUnknown=1;IP=10.92.0.5";
    const dead = await addPod(on, { args });
    // Its container has gone, namespace and all, and nobody ever sends a DEL.
    await on.removePod(dead);
    const heir = await on.makePod();
    const refused = await callAs(on, "ADD", heir, { args });
    expect(refused).toMatchObject({ t: "error", code: 101, message: expect.stringContaining(dead.containerId) });
    await eventually(async () => (await callAs(on, "ADD", heir, { args })).t === "ok", "the address to be given");
    await wire(on, heir, { args });
    expect(addressOf(heir)).toBe("10.92.0.5");
    expect(await on.reaches(heir)).toBe(true);
  });
});
