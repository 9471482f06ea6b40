import { afterEach, beforeEach, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { BridgeNode } from "./node/bridge-node.ts";
import { addressesOf, outcomeOf } from "./node/runtime-call.ts";
import type { StressPod } from "./node/stress-node.ts";

/** What the catalogue's faults of the disk leave out: they strike an agent that runs. Here it is down, or starts. */
describeWith("faults: the disk, while the agent is down and at its start", ["root", "nft", "strace"], () => {
  let node: BridgeNode;
  let pod: StressPod;

  beforeEach(async () => {
    node = await BridgeNode.start({ dataDirMb: 8, plugin: { addTimeoutMs: 2_000 } });
    pod = await node.makePod();
    const outcome = await node.call("ADD", pod);
    expect(outcome).toMatchObject({ t: "ok" });
    pod.result = outcome.t === "ok" ? outcome.result : undefined;
    pod.addresses = addressesOf(pod.result);
  });
  afterEach(async () => node?.[Symbol.asyncDispose]());

  const sh = (script: string): Promise<string> => node.machine.runWords(["sh", "-c", script]);

  const ways = [
    {
      name: "full",
      begin: () => sh(`cat /dev/zero > ${node.home.dataDir}/filler 2> /dev/null || true`),
      end: () => sh(`rm ${node.home.dataDir}/filler`),
      reason: /disk is full|no space|ENOSPC/i,
    },
    {
      name: "read-only",
      begin: () => sh(`mount -o remount,ro ${node.home.dataDir}`),
      end: () => sh(`mount -o remount,rw ${node.home.dataDir}`),
      reason: /read-?only|EROFS/i,
    },
  ] as const;

  for (const { name, begin, end, reason } of ways) {
    test(`${name}: a DEL that cannot be kept is refused and changes nothing, the agent says what keeps it; with room all goes on`, async () => {
      await node.endAgent("SIGTERM");
      await begin();
      const refused = await node.call("DEL", pod);
      expect(refused).toMatchObject({ t: "error" });
      if (refused.t === "error") {
        expect([101, 5]).toContain(refused.code);
        expect(refused.message).toContain(node.home.dataDir);
        expect(refused.message).toMatch(reason);
        // containerd takes a DEL that speaks of something "not found" for done.
        expect(refused.message).not.toMatch(/not found/i);
      }
      expect(await node.call("ADD", await node.makePod())).toMatchObject({ t: "error", code: 11 });
      expect(await node.status()).toMatchObject({ t: "error", code: 50 });
      expect(await node.reaches(pod)).toBe(true);

      const agent = node.home.spawn();
      // It may serve all the same what needs no disk, or it ends: then its supervisor tries again.
      const first = await Promise.race([agent.ended(), agent.logged(({ message }) => message === "ready")]);
      if (typeof first === "number") {
        expect(first).toBe(1);
        expect(agent.stderr).toMatch(reason);
        expect(agent.stderr).toContain(node.home.dataDir);
      } else await agent.end("SIGKILL");
      expect(await node.reaches(pod)).toBe(true);

      await end();
      expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
      await node.startAgent();
      await node.removePod(pod);
      await sh("for name in $(ls /run/netns); do ip netns del $name; done");
      expect(await node.disagreements([])).toEqual([]);
      expect(await node.status()).toMatchObject({ t: "ok" });
    });
  }

  test("slow for the plugin: what it has to write down itself is kept all the same", async () => {
    await node.endAgent("SIGKILL");
    const calls = "pwrite64,fsync,fdatasync,ftruncate";
    const slowly = [
      "strace",
      "-qq",
      "-o",
      "/dev/null",
      "-e",
      `trace=${calls}`,
      "-e",
      `inject=${calls}:delay_enter=200000`,
    ];
    const outcome = outcomeOf(await node.startCall("DEL", pod, slowly).ended);
    expect(outcome).toMatchObject({ t: "ok" });
    expect(outcome.ms).toBeGreaterThan(200);
    expect(outcome.ms).toBeLessThan(node.deadlineMs.DEL);
    await node.removePod(pod);
    await node.startAgent();
    expect(await node.disagreements([])).toEqual([]);
  });
});
