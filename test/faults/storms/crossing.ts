import { CniCode } from "../../../shared/errors.ts";
import { innerProcess } from "../../support/inner-process.ts";
import { random } from "../../support/random.ts";
import type { BridgeNode } from "../node/bridge-node.ts";
import { addressesOf, outcomeOf } from "../node/runtime-call.ts";
import type { StressOutcome, StressPod } from "../node/stress-node.ts";
import { inTurns, type StormFigures, type StormOptions, storm, type Weather } from "./storm.ts";

type Chance = (bound: number) => number;

/** A call of a round: when it begins, and whether it is stopped on its way until all others have ended. */
interface Step {
  readonly verb: "ADD" | "DEL";
  readonly afterMs: number;
  /** Stopped so long after its start: a DEL of an old life, which comes late. */
  readonly heldAfterMs?: number;
}

/** How a step ended, on the clock of all of them. */
interface Taken {
  readonly verb: "ADD" | "DEL";
  readonly began: number;
  readonly ended: number;
  readonly outcome: StressOutcome;
}

/** Starting the plugin takes some ten milliseconds, the agent's part one or two: within this everything meets everything. */
const spanMs = 60;
const pingedEvery = 20;

/** What a runtime must be ready to hear of calls for one sandbox that cross each other: again, or overtaken. */
const refusals = { ADD: [CniCode.tryAgainLater], DEL: [CniCode.tryAgainLater, CniCode.overtaken] } as const;

/**
 * ADD and DEL of one sandbox cross each other, in every order and with every overlap that `seed` brings: a DEL before,
 * during and after an ADD, ADD again, two DELs, a DEL of an old life that comes late. Whatever the calls answered, the
 * sandbox has all of its network afterwards or nothing of it, and the calls that come then find no trace of it all.
 */
export function crossing(options: StormOptions & { readonly node: BridgeNode }, seed: number): Promise<StormFigures> {
  const { node, pods: rounds } = options;
  return storm(options, async (weather) => {
    const { judge, polling, expectAgreement } = weather;
    {
      await using _ = polling();
      await inTurns(Array.from({ length: rounds }), (_, i) => cross(node, weather, random(seed + i), `${seed + i}`));
    }
    if (!judge.failed) await expectAgreement([]);
  });
}

async function cross(node: BridgeNode, { judge }: Weather, chance: Chance, seed: string): Promise<void> {
  if (judge.failed) return;
  const pod = await judge.makePod();
  const plan = planOf(chance);
  const taken = await carryOut(node, pod, plan);
  const told = `seed ${seed}, ${describe(taken)}`;
  for (const { verb, outcome } of taken) {
    judge.latencies.add(verb, outcome.ms);
    const isFine =
      outcome.t === "ok" || (outcome.t === "error" && (refusals[verb] as readonly number[]).includes(outcome.code));
    if (!isFine || outcome.ms > node.deadlineMs[verb]) judge.violate(`${told}: ${JSON.stringify(outcome)}`);
  }
  await expectWholeOrNothing(node, judge, pod, taken, told);

  // The next life of the sandbox, which all that crossed before must leave alone.
  if (chance(2) === 0 && (await judge.add(pod))) {
    await judge.call("CHECK", pod);
    if (chance(pingedEvery) === 0) await judge.expectReach(pod);
  }
  judge.yield(pod);
  await judge.call("DEL", pod);
  const left = await node.call("CHECK", pod);
  if (pod.result !== undefined && left.t === "ok") judge.violate(`${told}: it stands after a DEL that nothing crossed`);
  await judge.removePod(pod);
}

function planOf(chance: Chance): readonly Step[] {
  const steps = Array.from({ length: 2 + chance(4) }, (): Step => {
    const verb = chance(2) === 0 ? "ADD" : "DEL";
    const held = verb === "DEL" && chance(4) === 0 ? { heldAfterMs: 1 + chance(spanMs) } : {};
    return { verb, afterMs: chance(3) === 0 ? 0 : chance(spanMs), ...held };
  });
  return steps.some(({ verb }) => verb === "ADD") ? steps : [...steps, { verb: "ADD", afterMs: chance(spanMs) }];
}

async function carryOut(node: BridgeNode, pod: StressPod, plan: readonly Step[]): Promise<readonly Taken[]> {
  const others = Promise.withResolvers<void>();
  const started = plan.map((step) => take(node, pod, step, others.promise));
  const prompt = started.filter((_, i) => plan[i]?.heldAfterMs === undefined);
  await Promise.all(prompt);
  others.resolve();
  const taken = await Promise.all(started);
  for (const { verb, outcome } of taken.toSorted((a, b) => a.ended - b.ended))
    if (verb === "ADD" && outcome.t === "ok") {
      pod.result = outcome.result;
      pod.addresses = addressesOf(outcome.result);
    }
  return taken;
}

async function take(node: BridgeNode, pod: StressPod, step: Step, others: Promise<void>): Promise<Taken> {
  await Bun.sleep(step.afterMs);
  const began = performance.now();
  const running = node.startCall(step.verb, pod);
  if (step.heldAfterMs !== undefined) {
    await Bun.sleep(step.heldAfterMs);
    signal(() => innerProcess(running.pid), "SIGSTOP");
    await others;
    signal(() => innerProcess(running.pid), "SIGCONT");
    // `nsenter` stops with its child.
    signal(() => running.pid, "SIGCONT");
  }
  const outcome = outcomeOf(await running.ended);
  return { verb: step.verb, began, ended: performance.now(), outcome };
}

/** What CHECK says fits what the calls answered, as far as their order is known. */
async function expectWholeOrNothing(
  node: BridgeNode,
  judge: Weather["judge"],
  pod: StressPod,
  taken: readonly Taken[],
  told: string,
): Promise<void> {
  if (pod.result === undefined) return;
  const check = await node.call("CHECK", pod);
  judge.latencies.add("CHECK", check.ms);
  const stands = check.t === "ok";
  const last = taken.reduce((one, other) => (other.began > one.began ? other : one));
  // Only a call that began when all others had ended has nobody to share the sandbox with.
  const isAlone = taken.every((other) => other === last || other.ended <= last.began);
  if (isAlone && last.outcome.t === "ok" && stands !== (last.verb === "ADD"))
    judge.violate(`${told}: the last call was ${last.verb} and succeeded, and CHECK says ${JSON.stringify(check)}`);
  // A DEL that was told that it is overtaken has ended nothing, and neither has any other that came before.
  const dels = taken.filter(({ verb }) => verb === "DEL");
  const isAllOvertaken = dels.every(({ outcome }) => outcome.t === "error" && outcome.code === CniCode.overtaken);
  if (isAllOvertaken && !stands) judge.violate(`${told}: no DEL was done, and CHECK says ${JSON.stringify(check)}`);
}

const describe = (taken: readonly Taken[]): string =>
  taken
    .map(({ verb, began, ended, outcome }) => {
      const from = Math.round(began - Math.min(...taken.map((each) => each.began)));
      return `${verb} ${from}..${Math.round(from + ended - began)} ${outcome.t === "error" ? outcome.code : outcome.t}`;
    })
    .join(", ");

/** One that has ended already hears nothing. */
function signal(pid: () => number, name: "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid(), name);
  } catch {}
}
