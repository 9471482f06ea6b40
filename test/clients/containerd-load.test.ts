import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { executables } from "../conformance/plugin.ts";
import { ConfigurationList, configurationFor } from "../faults/node/runtime-call.ts";
import { sampled } from "../faults/steps.ts";
import { callPlugin } from "../support/cni-call.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { ContainerdNode } from "./containerd-node.ts";
import { gateway } from "./runtime-node.ts";

/** How often each of the ends strikes. In a run of all tests two of them strike, which the seed chooses. */
const rounds = Number(process.env["PIPETTE_CONTAINERD_ROUNDS"] ?? 0);
const needs = ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft"] as const;

describeWith("containerd ends and comes again while its pods come and go", needs, () => {
  let node: ContainerdNode;
  const chance = random(seed);

  beforeAll(async () => {
    node = await ContainerdNode.start();
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  const restarted = (signal: "SIGKILL" | "SIGTERM") => async (): Promise<void> => {
    await node.containerd.kill(signal);
    await node.containerd.restart();
  };
  const frozen = (forMs: number, end: () => Promise<void>) => async (): Promise<void> => {
    node.containerd.signal("SIGSTOP");
    await Bun.sleep(forMs);
    await end();
  };
  const ways = [
    { name: "killed", strike: restarted("SIGKILL") },
    { name: "stopped", strike: restarted("SIGTERM") },
    { name: "frozen", strike: frozen(1_500, async () => node.containerd.signal("SIGCONT")) },
    { name: "frozen, then killed", strike: frozen(500, restarted("SIGKILL")) },
  ];

  test.each(rounds > 0 ? ways : sampled(ways, 2, chance))(
    `containerd is $name: no address is lost or given twice, and every pod has its network (seed ${seed})`,
    async ({ strike }) => {
      for (let round = 0; round < Math.max(1, rounds); round++) {
        const churn = startChurn();
        await Bun.sleep(300 + chance(500));
        await strike();
        await Bun.sleep(300);
        await churn.stop();
        await tidyUp();
        await node.agrees();
        const live = await node.livePods();
        const addresses = live.flatMap((pod) => pod.addresses);
        expect(new Set(addresses).size).toBe(2 * live.length);
        for (const { netns } of live) expect(await node.base.node.ping(netns, gateway)).toBe(true);
        await node.clear();
        await node.agrees();
      }
    },
    120_000,
  );

  /** Four at a time: pods that come, stay for a while and go. A call that fails is made again, as the kubelet does it. */
  function startChurn() {
    let goesOn = true;
    const lane = async (name: string): Promise<void> => {
      const standing: string[] = [];
      for (let i = 0; goesOn; i++) {
        const id = await node.cri.runPod(`${name}-${i}`).catch(() => undefined);
        if (id !== undefined) standing.push(id);
        else await Bun.sleep(50);
        const first = standing.length > 2 ? standing.shift() : undefined;
        if (first !== undefined) await node.cri.endPod(first).catch(() => standing.push(first));
      }
    };
    const lanes = ["a", "b", "c", "d"].map(lane);
    return {
      stop: async (): Promise<void> => {
        goesOn = false;
        await Promise.all(lanes);
      },
    };
  }

  /** The kubelet ends what is not ready; what no runtime knows of, since its call was cut off, GC is for. */
  async function tidyUp(): Promise<void> {
    for (const [id, state] of await node.cri.pods()) if (state !== "SANDBOX_READY") await node.cri.endPod(id);
    const live = await node.livePods();
    const keep = live.map(({ containerId, ifname }) => ({ containerID: containerId, ifname }));
    const list = new ConfigurationList(join(node.base.confDir, "10-pipette.conflist")).read();
    await callPlugin({
      executable: join(executables, "pipette"),
      prefix: node.base.node.prefix,
      env: { CNI_COMMAND: "GC", CNI_PATH: executables },
      // With portmap in it, which does not know 1.1.0, the list is offered as an earlier one: no runtime would send this.
      conf: { ...configurationFor(list, { "cni.dev/valid-attachments": keep }), cniVersion: "1.1.0" },
    });
    const known = new Set(["outside", ...live.map(({ netns }) => netns.slice(netns.lastIndexOf("/") + 1))]);
    const names = (await node.base.node.run("ls /run/netns")).split("\n").filter((name) => name !== "");
    for (const name of names) if (!known.has(name)) await node.base.node.run(`ip netns del ${name}`);
  }
});
