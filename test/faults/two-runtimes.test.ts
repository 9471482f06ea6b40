import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { BridgeNode } from "./node/bridge-node.ts";
import { addressesOf } from "./node/runtime-call.ts";
import type { StressPod } from "./node/stress-node.ts";

/** A runtime that shares its node with another one: it knows its own pods alone. */
class Runtime {
  readonly pods: StressPod[] = [];
  readonly #node: BridgeNode;

  constructor(node: BridgeNode) {
    this.#node = node;
  }

  async add(): Promise<StressPod> {
    const pod = await this.#node.makePod();
    const outcome = await this.#node.call("ADD", pod);
    expect(outcome).toMatchObject({ t: "ok" });
    pod.result = outcome.t === "ok" ? outcome.result : undefined;
    pod.addresses = addressesOf(pod.result);
    this.pods.push(pod);
    return pod;
  }

  /** As libcni does it (api.go, GCNetworkList): where the list says so, plugins are not asked. */
  async collect(): Promise<"asked" | "not asked"> {
    const { disableGC = false } = JSON.parse(readFileSync(this.#node.home.conflist, "utf8"));
    if (disableGC) return "not asked";
    expect(await this.#node.gc(this.pods)).toMatchObject({ t: "ok" });
    return "asked";
  }
}

describeWith("peers runner-up cni#1086: two runtimes on one network", ["root", "nft"], () => {
  test("with disableGC neither's garbage collection takes the other's pods, after whatever becomes of the file", async () => {
    await using node = await BridgeNode.start({ agent: { cni: { disableGC: true } } });
    const [one, other] = [new Runtime(node), new Runtime(node)];
    const pods = [await one.add(), await other.add()];
    const collect = async (): Promise<void> => {
      for (const runtime of [one, other]) expect(await runtime.collect()).toBe("not asked");
      for (const pod of pods) expect(await node.reaches(pod)).toBe(true);
    };
    await collect();
    // Whoever writes the file anew writes this too: the agent at its start, the doctor.
    writeFileSync(node.home.conflist, "{}");
    const command = [join(node.executables, "pipette"), "doctor", "--config", node.home.configFile];
    await node.machine.runWords([...command, "--repair"]);
    await collect();
    writeFileSync(node.home.conflist, "{}");
    await node.endAgent("SIGTERM");
    await node.startAgent();
    await collect();
    expect(await node.disagreements(pods)).toEqual([]);
  });

  test("without it the one that collects is believed, and what it takes is told by name", async () => {
    await using node = await BridgeNode.start();
    const [one, other] = [new Runtime(node), new Runtime(node)];
    const kept = await one.add();
    const taken = await other.add();
    expect(await one.collect()).toBe("asked");
    expect(await node.reaches(kept)).toBe(true);
    expect(await node.reaches(taken)).toBe(false);
    await node.removePod(taken);
    expect(await node.disagreements([kept])).toEqual([]);
    expect(node.agentLog().join("\n")).toContain(taken.containerId);
  });
});
