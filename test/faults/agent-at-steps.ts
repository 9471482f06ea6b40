import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { KillPoint } from "../ipam/kill-points.ts";
import { random } from "../support/random.ts";
import { describeWith, type Need } from "../support/requires.ts";
import { seed } from "../support/seed.ts";
import type { BridgeNode, BridgeNodeOptions } from "./node/bridge-node.ts";
import { addressesOf } from "./node/runtime-call.ts";
import type { StressOutcome, StressPod } from "./node/stress-node.ts";
import { injecting, pointsOf, sampled, Watched } from "./steps.ts";

/** So many steps of each kind in a run of all tests, where a frozen agent costs seconds; with PIPETTE_KILL=all every one. */
const all = process.env["PIPETTE_KILL"] === "all" ? Number.POSITIVE_INFINITY : 0;
const maxOf = (signal: string): number => Math.max(all, signal === "STOP" ? 1 : 2);
/** Long enough for a call on a busy machine; those of a frozen agent take so long. */
const timeoutMs = 1_000;

/** What happens to the agent at a step, and what its supervisor, or nobody, does then. */
const ways = [
  { name: "killed", signal: "KILL", after: ["start"] },
  { name: "stopped and started again", signal: "TERM", after: ["start"] },
  { name: "frozen, and goes on", signal: "STOP", after: ["thaw"] },
  { name: "frozen, then killed", signal: "STOP", after: ["kill", "start"] },
] as const;

interface NodeAtSteps {
  /** Continues "the agent at every step of a call". */
  readonly on: string;
  readonly needs: readonly Need[];
  /** In a run of all tests the agent is only killed. */
  readonly isBrief?: true;
  start(options: BridgeNodeOptions): Promise<BridgeNode>;
}

/** A group of tests: what became of calls whose agent is struck at any of their steps. */
export function describeAgentAtSteps(kind: NodeAtSteps): void {
  const needs: readonly Need[] = ["root", "nft", "strace", ...kind.needs];
  describeWith(`faults: the agent at every step of a call on ${kind.on}, seed ${seed}`, needs, () => body(kind));
}

function body({ start, isBrief }: NodeAtSteps): void {
  let node: BridgeNode;
  const pick = random(seed);
  const steps: { ADD: readonly KillPoint[]; DEL: readonly KillPoint[] } = { ADD: [], DEL: [] };
  /** Stands all the time: nothing of this is about it. */
  let bystander: StressPod;

  const begin = async (): Promise<void> => {
    // What the agent does on its own seldom counts among the steps of the call.
    const agent = { janitorIntervalMs: 5_000, drainTimeoutMs: 5_000 };
    node = await start({ agent, plugin: { addTimeoutMs: timeoutMs, delTimeoutMs: timeoutMs } });
    bystander = await node.makePod();
    await succeeds("ADD", bystander);
  };
  beforeAll(async () => {
    await begin();
    const pod = await node.makePod();
    for (const verb of ["ADD", "DEL"] as const) {
      await using watched = await Watched.watch(node.agent.pid, []);
      await succeeds(verb, pod);
      // How often its threads wait for each other differs from run to run.
      steps[verb] = pointsOf((await watched.names()).filter((name) => name !== "futex"));
    }
    await node.removePod(pod);
  });
  afterEach(async ({ task }) => {
    // What one test has left is no fault of the next.
    if (task.result?.state !== "fail") return;
    await node[Symbol.asyncDispose]();
    await begin();
  });
  afterAll(async () => node?.[Symbol.asyncDispose]());

  /** As a runtime does it: what is to be tried again is. */
  async function succeeds(verb: "ADD" | "DEL", pod: StressPod): Promise<void> {
    let outcome = await node.call(verb, pod);
    for (let left = 5; left > 0 && outcome.t === "error" && outcome.code === 11; left--)
      outcome = await node.call(verb, pod);
    expect(outcome, JSON.stringify(outcome)).toMatchObject({ t: "ok" });
    if (verb === "ADD") note(pod, outcome);
  }

  function note(pod: StressPod, outcome: StressOutcome): void {
    if (outcome.t !== "ok") return;
    pod.result = outcome.result;
    pod.addresses = addressesOf(outcome.result);
  }

  const stateOf = (pid: number): string =>
    /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";

  /** @returns how the call ended, and whether the agent met the signal meanwhile */
  async function struck(verb: "ADD" | "DEL", pod: StressPod, point: KillPoint, signal: string) {
    const { pid } = node.agent;
    await using _ = await Watched.watch(pid, injecting(point, signal));
    const outcome = await node.call(verb, pod);
    if (signal === "STOP") return { outcome, hit: "tT".includes(stateOf(pid)) };
    if (outcome.t === "ok") await Bun.sleep(100);
    return { outcome, hit: !node.agentRuns() || outcome.t !== "ok" };
  }

  async function goOn(after: readonly ("start" | "kill" | "thaw")[]): Promise<void> {
    for (const step of after) {
      if (step === "thaw") node.thawAgent();
      if (step === "kill") await node.endAgent("SIGKILL");
      if (step === "start") {
        // One that was asked to stop is about to.
        await node.endAgent("SIGTERM");
        await node.startAgent();
      }
    }
  }

  const wanted = isBrief && all === 0 ? ways.slice(0, 1) : ways;
  for (const { name, signal, after } of wanted) {
    for (const verb of ["ADD", "DEL"] as const) {
      test(`${name} during ${verb}: nothing is lost, left or given twice`, async () => {
        const points = [...sampled(steps[verb], maxOf(signal), pick)];
        const wantedHits = points.length;
        // How often the agent reads differs from run to run: for a point that lay behind the call's end comes another.
        const spare = all > 0 ? [] : [...sampled(steps[verb], 5 * wantedHits, pick)];
        expect(steps[verb].length).toBeGreaterThan(20);
        let hits = 0;
        for (const point of points) {
          const at = `${name} at ${point.name} ${point.nth} of ${verb}, seed ${seed}`;
          const pod = await node.makePod();
          if (verb === "DEL") await succeeds("ADD", pod);
          const { outcome, hit } = await struck(verb, pod, point, signal);
          if (hit) hits++;
          else points.push(...spare.splice(pick(spare.length || 1), 1));
          // One that is frozen with the database's lock in its hand lets nobody leave word.
          const allowed = verb === "ADD" || signal === "STOP" ? ["ok", 11] : ["ok"];
          expect(allowed, `${at}: ${JSON.stringify(outcome)}`).toContain(
            outcome.t === "error" ? outcome.code : outcome.t,
          );
          await goOn(after);
          if (verb === "ADD") note(pod, outcome);
          // What succeeded stands; of what did not, the runtime tries again or takes it back.
          if (verb === "ADD" && outcome.t !== "ok" && pick(2) === 0) await succeeds("ADD", pod);
          const stands = verb === "ADD" && pod.addresses.length > 0;
          if (!stands && (verb === "ADD" || outcome.t !== "ok")) await succeeds("DEL", pod);
          if (!stands) await node.removePod(pod);
          expect(await node.disagreements(stands ? [bystander, pod] : [bystander]), at).toEqual([]);
          if (!stands) continue;
          expect(await node.reaches(pod), at).toBe(true);
          await succeeds("DEL", pod);
          await node.removePod(pod);
        }
        expect(await node.reaches(bystander)).toBe(true);
        expect(await node.disagreements([bystander])).toEqual([]);
        expect(hits).toBeGreaterThanOrEqual(Math.floor(0.7 * wantedHits));
        if (all > 0) console.log(`${name} during ${verb}: met at ${hits} of ${wantedHits} steps`);
      }, 900_000);
    }
  }
}
