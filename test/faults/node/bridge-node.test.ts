import { afterAll, beforeAll, expect, test } from "vitest";
import { startCommand } from "../../support/cni-call.ts";
import { describeWith } from "../../support/requires.ts";
import { BridgeNode } from "./bridge-node.ts";
import { addressesOf } from "./runtime-call.ts";
import type { StressPod } from "./stress-node.ts";

// What the stress and the soak trust, on a node that each test spoils in one place and mends again.
describeWith("a bridge node under stress", ["root", "nft"], () => {
  let node: BridgeNode;
  let pod: StressPod;

  beforeAll(async () => {
    node = await BridgeNode.start({ agreesWithinMs: 0, plugin: { addTimeoutMs: 2_000 } });
    pod = await node.makePod();
    const outcome = await node.call("ADD", pod);
    if (outcome.t === "ok") pod = { ...pod, result: outcome.result, addresses: addressesOf(outcome.result) };
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  test("is of one mind, and its pod reaches its gateway in both families", async () => {
    expect(pod.addresses).toHaveLength(2);
    expect(await node.disagreements([pod])).toEqual([]);
    expect(await node.reaches(pod)).toBe(true);
    expect(await node.call("CHECK", pod)).toMatchObject({ t: "ok" });
  });

  const sqlite = (text: string): string =>
    `${process.execPath} -e new(require("node:sqlite").DatabaseSync)("LEASES").exec(${JSON.stringify(text).replaceAll(" ", "\\u0020")})`;
  test.each([
    [
      "a file that a killed process left",
      "touch DATA/leases.db.7.tmp",
      "rm DATA/leases.db.7.tmp",
      /leases\.db\.7\.tmp" was left/,
    ],
    ["an interface of nobody", "ip link add stray0 type veth", "ip link del stray0", /3 interfaces stand .*stray0/],
    [
      "a packet rule that came later",
      "nft add table inet stray",
      "nft delete table inet stray",
      /packet rules are .*stray/s,
    ],
    [
      "an element of the packet rules of nobody",
      "nft add element inet pipette-pipette0 pods4 {10.92.9.9}",
      "nft delete element inet pipette-pipette0 pods4 {10.92.9.9}",
      /the packet rules know 2 IPv4 addresses of pods, wanted 1/,
    ],
    [
      "a database whose parts contradict each other",
      sqlite("UPDATE mark SET value = value - 1 WHERE name = 'generation'"),
      sqlite("UPDATE mark SET value = value + 1 WHERE name = 'generation'"),
      /^\S+ generation \d+$|generation/,
    ],
  ])("sees %s", async (_what, spoil, mend, wanted) => {
    const run = (command: string): Promise<string> =>
      node.machine.run(command.replace("DATA", node.home.dataDir).replace("LEASES", `${node.home.dataDir}/leases.db`));
    await run(spoil);
    try {
      expect((await node.disagreements([pod])).join("\n")).toMatch(wanted);
    } finally {
      await run(mend);
    }
    expect(await node.disagreements([pod])).toEqual([]);
  });

  test("sees a plugin that hangs", async () => {
    await node.machine.run("cp /bin/sleep /run/pipette");
    const { ended } = startCommand([...node.machine.prefix, "/run/pipette", "60"], {}, "");
    await expect.poll(() => node.machine.run("pgrep -c pipette")).toBe("2");
    expect(await node.disagreements([pod])).toEqual(["1 plugins still run, wanted none"]);
    await node.machine.run("pkill -f ^/run/pipette");
    await ended;
    expect(await node.disagreements([pod])).toEqual([]);
  });

  test("says what a call came to when its plugin is killed, and when nobody answers", async () => {
    node.freezeAgent();
    const running = node.startCall("CHECK", pod);
    await expect.poll(() => node.machine.run("pgrep -c pipette")).toBe("2");
    await node.machine.run(`kill -9 ${await node.machine.run("pgrep -n pipette")}`);
    expect((await running.ended).status).not.toBe(0);
    node.thawAgent();
    await node.endAgent("SIGKILL");
    expect(node.agentRuns()).toBe(false);
    expect(await node.call("CHECK", pod)).toMatchObject({ t: "error", code: 11 });
    await node.startAgent();
    expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
    await node.removePod(pod);
  });
});
