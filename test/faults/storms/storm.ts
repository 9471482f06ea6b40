import type { StressNode, StressPod } from "../node/stress-node.ts";
import type { VerbLatency } from "../workload/latencies.ts";
import { Workload } from "../workload/workload.ts";

/** What one storm came to. */
export interface StormFigures {
  readonly storm: string;
  /** Whose plugins it was. */
  readonly of: string;
  readonly pods: number;
  readonly seconds: number;
  readonly verbs: readonly VerbLatency[];
  /** What was not as it has to be: a call that failed or took too long, an address given twice, a node of two minds. */
  readonly wrong: readonly string[];
}

export interface StormOptions {
  readonly name: string;
  readonly node: StressNode;
  readonly of?: string;
  readonly pods: number;
}

/** Of the kubelet, which polls every five seconds: there are few in a storm, so it comes more often here. */
const statusEveryMs = 500;
/** Sandboxes are made and unmade so many at a time, which is no part of what is measured. */
const handsAtOnce = 8;

/** What a storm's body works with. */
export interface Weather {
  /** Judges what it is told to do, and keeps its times. */
  readonly judge: Workload;
  /** Polls STATUS until disposed: it succeeds, also where every address is in use. */
  polling(): AsyncDisposable;
  /** New sandboxes. */
  makePods(count: number): Promise<StressPod[]>;
  /** Ends sandboxes whose DEL has succeeded. */
  removePods(pods: readonly StressPod[]): Promise<void>;
  /** The node is of one mind about what should stand. */
  expectAgreement(pods: readonly StressPod[]): Promise<void>;
}

/** Runs a storm; whatever goes wrong in it is one of its figures. */
export async function storm(
  { name, node, of = "pipette", pods }: StormOptions,
  body: (weather: Weather) => Promise<void>,
): Promise<StormFigures> {
  const judge = new Workload(node, { seed: 1, lanes: 0, podsPerLane: 0 });
  const from = performance.now();
  await body({
    judge,
    polling: () => poll(judge),
    makePods: (count) => inTurns(Array.from({ length: count }), () => judge.makePod()),
    removePods: async (gone) => void (await inTurns(gone, (pod) => judge.removePod(pod))),
    expectAgreement: async (standing) => {
      for (const line of await node.disagreements(standing)) judge.violate(`the node is not of one mind: ${line}`);
    },
  });
  const seconds = (performance.now() - from) / 1000;
  return { storm: name, of, pods, seconds, verbs: judge.latencies.table(node.deadlineMs), wrong: judge.violations };
}

/** Some work on each of these, so many at a time, in their order. */
export async function inTurns<T, R>(
  items: readonly T[],
  work: (item: T, i: number) => Promise<R>,
  atOnce = handsAtOnce,
): Promise<R[]> {
  const done: R[] = [];
  let next = 0;
  const hand = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) done[i] = await work(items[i] as T, i);
  };
  await Promise.all(Array.from({ length: atOnce }, hand));
  return done;
}

function poll(judge: Workload): AsyncDisposable {
  const stopped = new AbortController();
  const polled = (async () => {
    while (!stopped.signal.aborted) {
      await judge.status();
      await Bun.sleep(statusEveryMs);
    }
  })();
  return {
    [Symbol.asyncDispose]: async () => {
      stopped.abort();
      await polled;
    },
  };
}
