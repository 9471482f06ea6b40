import { readFileSync, rmSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { KillPoint } from "../ipam/kill-points.ts";
import { eventually } from "../support/agent-process.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import { BridgeNode } from "./node/bridge-node.ts";
import { addressesOf, outcomeOf } from "./node/runtime-call.ts";
import type { StressOutcome, StressPod, StressVerb } from "./node/stress-node.ts";
import { injecting, namesIn, pointsOf, sampled } from "./steps.ts";

/** So many calls of the system for each verb in a run of all tests; with PIPETTE_KILL=all every one. */
const most = process.env["PIPETTE_KILL"] === "all" ? Number.POSITIVE_INFINITY : 6;
const verbs = ["ADD", "DEL", "CHECK", "GC", "STATUS"] as const;

describeWith(
  `faults: the plugin killed at every system call, an agent behind it, seed ${seed}`,
  ["root", "nft", "strace"],
  () => {
    let node: BridgeNode;
    const pick = random(seed);
    /** Stands all the time: nothing of this is about it. */
    let bystander: StressPod;

    const begin = async (): Promise<void> => {
      node = await BridgeNode.start();
      bystander = await added(await node.makePod());
    };
    beforeAll(begin);
    afterEach(async ({ task }) => {
      // What one test has left is no fault of the next.
      if (task.result?.state !== "fail") return;
      await node[Symbol.asyncDispose]();
      await begin();
    });
    afterAll(async () => node?.[Symbol.asyncDispose]());

    function call(verb: StressVerb, pod: StressPod, prefix: readonly string[] = []): Promise<StressOutcome> {
      // Of the pods of a GC one stands and the other is to go.
      if (verb === "GC") return node.gc([bystander], prefix);
      if (verb === "STATUS") return node.status(prefix);
      return node.startCall(verb, pod, prefix).ended.then(outcomeOf);
    }

    async function succeeds(verb: StressVerb, pod: StressPod): Promise<StressOutcome> {
      const outcome = await call(verb, pod);
      expect(outcome, JSON.stringify(outcome)).toMatchObject({ t: "ok" });
      return outcome;
    }

    async function added(pod: StressPod): Promise<StressPod> {
      const outcome = await succeeds("ADD", pod);
      pod.result = outcome.t === "ok" ? outcome.result : undefined;
      pod.addresses = addressesOf(pod.result);
      return pod;
    }

    /** A pod as that verb finds it. */
    const podFor = async (verb: StressVerb): Promise<StressPod> =>
      verb === "ADD" || verb === "STATUS" ? node.makePod() : added(await node.makePod());

    async function pointsIn(verb: StressVerb): Promise<readonly KillPoint[]> {
      const trace = `/tmp/pt-plugin-${process.pid}`;
      const pod = await podFor(verb);
      try {
        const outcome = await call(verb, pod, ["strace", "-qq", "-o", trace]);
        expect(outcome, JSON.stringify(outcome)).toMatchObject({ t: "ok" });
        return pointsOf(namesIn(readFileSync(trace, "utf8")).slice(1));
      } finally {
        rmSync(trace, { force: true });
        await succeeds("DEL", pod);
        await node.removePod(pod);
      }
    }

    /** Nearly all of them come before the agent hears of anything. */
    function chosen(points: readonly KillPoint[]): readonly KillPoint[] {
      const connected = points.findIndex(({ name }) => name === "connect");
      const after = sampled(points.slice(connected), most - 1, pick);
      return [...sampled(points.slice(0, connected), most - after.length, pick), ...after];
    }

    /** Interfaces and leases, as they come to be once the agent has done what it was asked. */
    async function expectPods(pods: readonly StressPod[], at: string): Promise<void> {
      const wanted = pods.map(({ containerId }) => containerId).sort();
      await eventually(async () => {
        using store = await node.home.store();
        const holders = new Set(
          store.list().flatMap(({ state, owner }) => (state === "allocated" ? owner.sandboxId : [])),
        );
        return [[...holders].sort(), await node.home.containers()].every((ids) => ids.join() === wanted.join());
      }, `${wanted.length} pods, ${at}`);
    }

    for (const verb of verbs) {
      test(`${verb}: what its runtime does next succeeds, and nothing is lost or left`, async () => {
        const all = await pointsIn(verb);
        const points = chosen(all);
        expect(points.length).toBeGreaterThan(3);
        let killed = 0;
        for (const point of points) {
          const at = `killed at ${point.name} ${point.nth} of ${verb}, seed ${seed}`;
          const pod = await podFor(verb);
          const outcome = await call(verb, pod, ["strace", "-qq", "-o", "/dev/null", ...injecting(point, "KILL")]);
          if (outcome.t === "died") killed++;
          else expect(outcome.t, at).toBe("ok");
          // A runtime tries again, or gives the sandbox up.
          if (verb === "ADD" && pick(2) === 0) {
            await added(pod);
            await expectPods([bystander, pod], at);
          } else if (verb !== "ADD" && pick(2) === 0) await succeeds(verb, pod);
          if (verb === "CHECK") await expectPods([bystander, pod], at);
          await succeeds("DEL", pod);
          await expectPods([bystander], at);
          await node.removePod(pod);
        }
        expect(await node.disagreements([bystander])).toEqual([]);
        expect(await node.reaches(bystander)).toBe(true);
        // A few points may lie behind the end: how often it reads differs from run to run.
        expect(killed).toBeGreaterThanOrEqual(Math.floor(0.7 * points.length));
        if (most > all.length) console.log(`${verb}: killed at ${killed} of ${all.length} calls`);
      }, 1_200_000);
    }
  },
);
