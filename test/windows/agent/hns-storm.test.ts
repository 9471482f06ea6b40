import { afterAll, afterEach, beforeAll, expect, inject, test } from "vitest";
import { CniCode } from "../../../shared/errors.ts";
import { addressesOf } from "../../faults/node/runtime-call.ts";
import type { StressOutcome, StressPod, StressVerb } from "../../faults/node/stress-node.ts";
import { WindowsStressNode } from "../../faults/node/windows-node.ts";
import { Latencies, latencyLines } from "../../faults/workload/latencies.ts";
import { random } from "../../support/random.ts";
import { seed } from "../../support/seed.ts";
import { describeWine } from "../wine/describe-wine.ts";

/** Plugins that run at a time. Each is a Windows process, whose start under Wine costs a core some 200 ms. */
const clients = 6;
const many = 100;

describeWine(`a storm on a Windows node (seed ${seed})`, () => {
  let node: WindowsStressNode;
  const latencies = new Latencies();
  const chance = random(seed);
  beforeAll(async () => {
    node = await WindowsStressNode.start({ runDirectory: inject("wineDirectory"), agent: { cooldownMs: 0 } });
  });
  afterEach(({ task }) => console.log([task.name, ...latencyLines(latencies.table(node.deadlineMs))].join("\n")));
  afterAll(() => node[Symbol.asyncDispose]());

  /** Counts the call, and holds it against the deadline that its configuration promises. */
  async function timed(verb: StressVerb, call: Promise<StressOutcome>): Promise<StressOutcome> {
    const outcome = await call;
    latencies.add(verb, outcome.ms);
    expect(outcome.ms).toBeLessThan(node.deadlineMs[verb]);
    return outcome;
  }
  const ok = async (verb: StressVerb, call: Promise<StressOutcome>): Promise<unknown> => {
    const outcome = await timed(verb, call);
    expect(outcome.t, [JSON.stringify(outcome), ...node.agentLog()].join("\n")).toBe("ok");
    return outcome.t === "ok" ? outcome.result : undefined;
  };
  async function add(pod: StressPod): Promise<void> {
    pod.result = await ok("ADD", node.call("ADD", pod));
    pod.addresses = addressesOf(pod.result);
  }
  async function remove(pod: StressPod): Promise<void> {
    await ok("DEL", node.call("DEL", pod));
    await node.removePod(pod);
  }
  async function inTurns<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
    const left = [...all];
    const client = async (): Promise<void> => {
      for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
    };
    await Promise.all(Array.from({ length: clients }, client));
  }
  /** Leases, documents, runtime and database are of one mind, and no two pods have one address. */
  async function expectAgreement(pods: readonly StressPod[]): Promise<void> {
    expect(new Set(pods.flatMap(({ addresses }) => addresses)).size).toBe(pods.length);
    expect(await node.disagreements(pods)).toEqual([]);
    expect(await Promise.all(pods.map((pod) => node.reaches(pod)))).toEqual(pods.map(() => true));
  }
  const makePods = (count: number): Promise<StressPod[]> =>
    Promise.all(Array.from({ length: count }, () => node.makePod()));

  let standing: StressPod[] = [];

  test(`${many} pods at once have their network, each its own`, async () => {
    standing = await makePods(many);
    await inTurns(standing, add);
    await expectAgreement(standing);
    expect(node.windows.stubs.hns.count("HcnCreateEndpoint")).toBe(many);
  }, 240_000);

  test("ADD that kubelet repeats, for each container and to ask for the state, answers the same while others leave", async () => {
    const leaving = standing.splice(0, 30);
    const asked = standing.slice(0, 30);
    const repeat = async (pod: StressPod): Promise<void> => {
      for (const name of ["app", "sidecar"]) {
        const joined = await ok("ADD", node.callForContainer("ADD", pod, name));
        expect(addressesOf(joined)).toEqual(pod.addresses);
      }
      for (let i = 0; i < 2; i++) expect(await ok("ADD", node.call("ADD", pod))).toEqual(pod.result);
      // The end of a container ends nothing of its pod.
      await ok("DEL", node.callForContainer("DEL", pod, "app"));
    };
    await Promise.all([inTurns(asked, repeat), inTurns(leaving, remove)]);
    await expectAgreement(standing);
  }, 240_000);

  test("ADD and DEL of one sandbox that cross leave all of its network or nothing", async () => {
    const cross = async (pod: StressPod): Promise<void> => {
      // What a runtime must be ready to hear of calls that cross: again, or overtaken.
      const refusals = { ADD: [CniCode.tryAgainLater], DEL: [CniCode.tryAgainLater, CniCode.overtaken] };
      const verbs = (["ADD", "DEL", "ADD", "DEL"] as const).slice(chance(3));
      const calls = verbs.map(async (verb) => {
        await Bun.sleep(chance(400));
        const outcome = await timed(verb, node.call(verb, pod));
        if (outcome.t === "ok") return;
        const code = outcome.t === "error" ? outcome.code : undefined;
        expect(refusals[verb], JSON.stringify(outcome)).toContain(code);
      });
      await Promise.all(calls);
      await add(pod);
      expect(await node.reaches(pod)).toBe(true);
      await remove(pod);
    };
    await inTurns(await makePods(12), cross);
    await expectAgreement(standing);
  }, 240_000);

  test("pods that are deleted while the agent is down are gone when it is up, with their addresses free", async () => {
    await node.endAgent("SIGKILL");
    await inTurns(standing, remove);
    expect(node.windows.endpoints()).toHaveLength(standing.length);
    await node.startAgent();
    expect(await node.disagreements([])).toEqual([]);
    expect(node.windows.endpoints()).toEqual([]);
    // Every string that was given has been freed; a listing may still have had one when the last call began.
    expect(Math.min(...node.windows.stubs.hns.calls.slice(-4).map(({ strings }) => strings))).toBe(0);
  }, 240_000);
});
