import { random } from "../../support/random.ts";
import type { StressKind, StressNode } from "../node/stress-node.ts";
import type { Fault } from "../workload/fault.ts";
import type { VerbLatency } from "../workload/latencies.ts";
import { Workload } from "../workload/workload.ts";
import { type Growth, growthOf, type Sample } from "./growth.ts";

export interface SoakOptions {
  /** With an agent that is ready. */
  readonly node: StressNode;
  readonly faults: readonly Fault[];
  readonly seconds: number;
  /** The time, in seconds. Default: the machine's; a node in memory tells it by its calls, so that load changes nothing. */
  readonly now?: () => number;
  readonly seed: number;
  /** Default: what two cores carry beside other work. */
  readonly lanes?: number;
  readonly podsPerLane?: number;
  /** The longest time without a fault, and the longest that one lasts as a rule; one in six lasts up to four times as long. */
  readonly quietMs?: number;
  readonly faultMs?: number;
  /** Once every some seconds. */
  readonly progress?: (text: string) => void;
  /** Ends the run early, with its report. */
  readonly signal?: AbortSignal;
}

export interface SoakReport {
  readonly dataPath: StressKind;
  readonly seed: number;
  readonly seconds: number;
  readonly calls: number;
  readonly verbs: readonly VerbLatency[];
  /** How often each fault struck. */
  readonly faults: Readonly<Record<string, number>>;
  readonly growth: readonly Growth[];
  readonly looks: number;
  /** What was not as it has to be; empty is what everybody wants. */
  readonly wrong: readonly string[];
  /** Where something was wrong: what happened last, and the agent's last words. */
  readonly events: readonly string[];
  readonly agentLog: readonly string[];
}

/** From this part of the run on, only faults that spare the agent strike, so that its growth shows. */
const oneAgentFrom = 0.4;
const progressMs = 10_000;

/** Churn and faults in turn, each followed by a look at everything that has to hold. */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const { node, seconds, seed, lanes = 4, podsPerLane = 6, signal, progress = () => undefined } = options;
  const { quietMs = 12_000, faultMs = 5_000, now = () => performance.now() / 1000 } = options;
  const workload = new Workload(node, { seed, lanes, podsPerLane });
  const chance = random(seed);
  const struck = new Map<string, number>();
  const deck = new Deck(options.faults, chance);
  const samples: Sample[] = [];
  const from = now();
  const elapsed = (): number => now() - from;
  const goesOn = (): boolean => elapsed() < seconds && !workload.failed && signal?.aborted !== true;
  const stopped = new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
  const wait = (ms: number): Promise<void> =>
    Promise.race([stopped, Bun.sleep(Math.min(ms, Math.max(0, seconds - elapsed()) * 1000))]);
  const tell = (): void => {
    const faults = [...struck.values()].reduce((sum, n) => sum + n, 0);
    const words = `${workload.latencies.calls} calls, ${faults} faults, ${workload.pods.length} pods`;
    progress(`${clock(elapsed())} of ${clock(seconds)}: ${words}`);
  };
  tell();
  const telling = setInterval(tell, progressMs);
  const lasts = (): number => chance(chance(6) === 0 ? 4 * faultMs : faultMs);
  let steadyFrom = Number.POSITIVE_INFINITY;
  try {
    while (goesOn()) {
      workload.begin();
      await wait(quietMs / 4 + chance((quietMs * 3) / 4));
      const steady = elapsed() > seconds * oneAgentFrom;
      if (steady) steadyFrom = Math.min(steadyFrom, elapsed());
      const fault = deck.next((each) => !steady || each.endsAgent !== true);
      if (fault !== undefined && goesOn()) {
        const joining = options.faults.filter((each) => each.joinsOthers === true && each !== fault);
        const second = chance(4) === 0 ? joining[chance(Math.max(1, joining.length))] : undefined;
        const together = second === undefined ? [fault] : [fault, second];
        for (const { name } of together) struck.set(name, (struck.get(name) ?? 0) + 1);
        await Promise.all(together.map((each) => workload.endure(each, chance, lasts())));
      }
      await workload.judge();
      if (!workload.failed) samples.push(await look(node, elapsed()));
    }
    await workload.end();
    if (!workload.failed) await workload.judge();
  } finally {
    clearInterval(telling);
  }
  const growth = growthOf(samples.filter((sample) => sample.seconds >= steadyFrom));
  const grown = growth
    .filter(({ grows }) => grows)
    .map(({ of, first, last }) => `the agent's ${of} grew from ${first} to ${last}`);
  const wrong = [...workload.violations, ...grown];
  return {
    dataPath: node.kind,
    seed,
    seconds: elapsed(),
    calls: workload.latencies.calls,
    verbs: workload.latencies.table(node.deadlineMs),
    faults: Object.fromEntries(struck),
    growth,
    looks: samples.length,
    wrong,
    events: wrong.length === 0 ? [] : workload.events.last(),
    agentLog: wrong.length === 0 ? [] : node.agentLog(),
  };
}

async function look(node: StressNode, seconds: number): Promise<Sample> {
  const { residentMb, descriptors, threads } = node.holdings();
  return { seconds, residentMb, descriptors, threads, databaseKb: (await node.databaseBytes()) / 1024 };
}

/** Each fault has its turn before any comes again, in an order that the seed decides. */
class Deck {
  readonly #all: readonly Fault[];
  readonly #chance: (bound: number) => number;
  #left: Fault[] = [];

  constructor(all: readonly Fault[], chance: (bound: number) => number) {
    this.#all = all;
    this.#chance = chance;
  }

  next(wanted: (fault: Fault) => boolean): Fault | undefined {
    if (!this.#left.some(wanted)) this.#left = [...this.#all];
    const choice = this.#left.filter(wanted);
    const fault = choice[this.#chance(Math.max(1, choice.length))];
    this.#left = this.#left.filter((each) => each !== fault);
    return fault;
  }
}

const clock = (seconds: number): string => {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
};
