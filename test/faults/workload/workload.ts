import { traceOf } from "../../../shared/reason.ts";
import { random } from "../../support/random.ts";
import { addressesOf, type PodVerb } from "../node/runtime-call.ts";
import type { StressNode, StressOutcome, StressPod, StressVerb } from "../node/stress-node.ts";
import { Events } from "./events.ts";
import type { Fault, Struck } from "./fault.ts";
import { Lane } from "./lane.ts";
import { Latencies } from "./latencies.ts";
import { isExcused, Troubles } from "./troubles.ts";

/** After a fault's end the node is ready again within this time, on a machine with other work. */
const settlesWithinMs = 60_000;
const looksForReach = 3;

export interface WorkloadOptions {
  readonly seed: number;
  /** How many pods are worked on at a time. */
  readonly lanes: number;
  /** How many pods stand at most in each lane. */
  readonly podsPerLane: number;
}

/**
 * Pods that come and go on a node, as its runtime sees to it: ADD, ADD again, CHECK, pings, DEL, DEL again, STATUS, and
 * GC with what the runtime keeps. It knows what it may expect, and writes down what was not so. With the first such
 * thing it stops, so that the node shows what happened.
 */
export class Workload {
  readonly node: StressNode;
  readonly events = new Events();
  readonly latencies = new Latencies();
  readonly #troubles = new Troubles();
  readonly #violations: string[] = [];
  readonly #lanes: readonly Lane[];
  /** What the runtime would list: pods whose ADD is under way and whose DEL has not succeeded are among them. */
  readonly #listed = new Set<StressPod>();
  /** And by which fault. */
  readonly #lost = new Map<StressPod, Fault>();
  /** Addresses of pods that live. */
  readonly #holders = new Map<string, StressPod>();
  #collecting: Promise<StressOutcome> | undefined;
  #goOn = true;
  #work: Promise<unknown> | undefined;

  constructor(node: StressNode, { seed, lanes, podsPerLane }: WorkloadOptions) {
    this.node = node;
    this.#lanes = Array.from({ length: lanes }, (_, i) => new Lane(this, random(seed + i), podsPerLane));
  }

  /** What was not as it has to be: one sentence each. */
  get violations(): readonly string[] {
    return this.#violations;
  }

  get failed(): boolean {
    return this.#violations.length > 0;
  }

  /** Those with a network. */
  get pods(): readonly StressPod[] {
    return this.#lanes.flatMap(({ pods }) => pods);
  }

  begin(): void {
    if (this.#work !== undefined) return;
    this.#goOn = true;
    this.#work = Promise.all(this.#lanes.map((lane) => this.#run(lane)));
  }

  /** Every lane ends what it has begun; the pods stand. */
  async rest(): Promise<void> {
    this.#goOn = false;
    await this.#work;
    this.#work = undefined;
  }

  async #run(lane: Lane): Promise<void> {
    try {
      while (this.#goOn && !this.failed) await lane.step();
      if (!this.failed) await lane.endLost();
    } catch (caught) {
      this.violate(`the node failed under its runtime: ${traceOf(caught)}`);
    }
  }

  /** Lets `fault` strike, last, end and settle, whether or not the lanes run. */
  async endure(fault: Fault, chance: (bound: number) => number, lastsMs: number): Promise<void> {
    this.events.add(`FAULT ${fault.name}`);
    const pid = this.node.agentRuns() ? this.node.holdings().pid : undefined;
    const striking = fault.strike(this.node, this.pods, chance);
    const trouble = this.#troubles.begin(fault, striking);
    try {
      const struck = await striking;
      this.#note(fault, struck);
      await Bun.sleep(lastsMs);
      this.events.add(`HEAL ${fault.name}`);
      await struck[Symbol.asyncDispose]();
      await this.#settle(fault);
      const together = this.#troubles.during(trouble.from, performance.now());
      if (!together.some((each) => each.fault.endsAgent === true) && this.node.holdings().pid !== pid)
        this.violate(`${fault.name}: the agent is another process, wanted it to outlive that`);
      this.events.add(`SETTLED ${fault.name}`);
    } catch (caught) {
      this.violate(`${fault.name}, and did not end: ${traceOf(caught)}`);
    } finally {
      this.#troubles.end(trouble);
    }
  }

  #note(fault: Fault, { what, lost }: Struck): void {
    // An ADD may have succeeded since it began to strike.
    const pods = lost === "all" ? this.pods : lost;
    for (const pod of pods) {
      this.#lost.set(pod, fault);
      this.yield(pod);
    }
    this.events.add(`STRUCK ${what}${pods.length === 0 ? "" : `, ${pods.length} pods lost their network`}`);
  }

  async #settle(fault: Fault): Promise<void> {
    const until = performance.now() + settlesWithinMs;
    const alone = this.#troubles.during(performance.now(), performance.now()).length === 1;
    if (alone && !this.node.agentRuns()) await this.node.startAgent();
    for (;;) {
      const outcome = await this.#judged("STATUS", "", () => this.node.status());
      const problems = outcome.t === "ok" ? await this.node.problems() : [said(outcome)];
      if (problems.length === 0 || this.failed) return;
      if (performance.now() > until) return this.violate(`${fault.name}: the agent still says ${problems.join("; ")}`);
      await Bun.sleep(100);
    }
  }

  /** With the lanes at rest: everything that must hold on a node, whatever it has gone through. */
  async judge(): Promise<void> {
    await this.rest();
    if (this.failed) return;
    // Those that the runtime forgot are to go before the node can be of its mind.
    await this.collect();
    const { pods } = this;
    for (const line of await this.node.disagreements(pods)) this.violate(`the node is not of one mind: ${line}`);
    for (const pod of pods) await this.expectReach(pod);
  }

  /** With the lanes at rest: those that lost their network go, as they do by themselves where lanes work. */
  async endLost(): Promise<void> {
    for (const lane of this.#lanes) await lane.endLost();
  }

  /** Everything is taken down again. */
  async end(): Promise<void> {
    await this.rest();
    for (const lane of this.#lanes) if (!this.failed) await lane.endAll();
  }

  // What lanes do.

  async makePod(): Promise<StressPod> {
    const pod = await this.node.makePod();
    // A runtime adds no pod while it collects garbage without naming it (specification 1.1.0, "GC").
    while (this.#collecting !== undefined) await this.#collecting;
    this.#listed.add(pod);
    return pod;
  }

  async removePod(pod: StressPod): Promise<void> {
    await this.node.removePod(pod);
    this.#listed.delete(pod);
    this.#lost.delete(pod);
  }

  isLost = (pod: StressPod): boolean => this.#lost.has(pod);

  /** @returns whether the pod got its network, whose address nobody else has */
  async add(pod: StressPod): Promise<boolean> {
    const outcome = await this.call("ADD", pod);
    if (outcome.t !== "ok") return false;
    pod.result = outcome.result;
    pod.addresses = addressesOf(outcome.result);
    if (pod.addresses.length === 0) this.violate(`${shortOf(pod)}: ADD answered no address`);
    for (const address of pod.addresses) {
      const holder = this.#holders.get(address);
      if (holder !== undefined && holder !== pod && !this.isLost(holder))
        this.violate(`${address} has been given to ${shortOf(pod)} while ${shortOf(holder)} has it`);
      this.#holders.set(address, pod);
    }
    return true;
  }

  /** From now on others may get its addresses. */
  yield(pod: StressPod): void {
    for (const address of pod.addresses) if (this.#holders.get(address) === pod) this.#holders.delete(address);
  }

  call(verb: PodVerb, pod: StressPod): Promise<StressOutcome> {
    return this.#judged(verb, shortOf(pod), () => this.node.call(verb, pod), pod);
  }

  async status(): Promise<void> {
    await this.#judged("STATUS", "", () => this.node.status());
  }

  /** One at a time, as a runtime does it. */
  async collect(): Promise<void> {
    if (this.#collecting !== undefined) return;
    const keep = [...this.#listed];
    this.#collecting = this.#judged("GC", `keeps ${keep.length}`, () => this.node.gc(keep));
    await this.#collecting;
    this.#collecting = undefined;
  }

  async expectReach(pod: StressPod): Promise<void> {
    const from = performance.now();
    for (let look = 1; look <= looksForReach; look++) {
      if (await this.node.reaches(pod)) return;
      this.events.add(`ping ${shortOf(pod)} came back with nothing`);
    }
    if (!(await this.#explains(pod, from))) this.violate(`${shortOf(pod)} does not reach its gateway`);
  }

  /** @param how what is not as it was */
  async differs(pod: StressPod, how: string): Promise<void> {
    if (!(await this.#explains(pod, 0))) this.violate(`${shortOf(pod)}: ${how}`);
  }

  /** Until it is made anew a pod that a fault took something from stays without, whatever else has ended. */
  async #explains(pod: StressPod, from: number): Promise<boolean> {
    return this.isLost(pod) || (await this.#troubles.explains(pod, from));
  }

  violate(text: string): void {
    this.events.add(`WRONG ${text}`);
    this.#violations.push(text);
  }

  /** Every call goes through here: its time, its end, and whether that may be. */
  async #judged(
    verb: StressVerb,
    about: string,
    call: () => Promise<StressOutcome>,
    pod?: StressPod,
  ): Promise<StressOutcome> {
    const from = performance.now();
    const outcome = await call();
    const during = this.#troubles.during(from, performance.now());
    const words = `${verb} ${about} ${said(outcome)}, ${Math.round(outcome.ms)} ms`;
    this.events.add(words);
    const names = during.map(({ fault }) => fault.name).join(", ");
    this.latencies.add(verb, outcome.ms, during.length === 0 ? undefined : names);
    const under = during.length === 0 ? "" : ` (under: ${names})`;
    const took = pod === undefined ? undefined : this.#lost.get(pod);
    const faults = [...during.map(({ fault }) => fault), ...(took === undefined ? [] : [took])];
    if (!isExcused(verb, outcome, faults)) this.violate(`${words}${under}`);
    if (outcome.ms > this.node.deadlineMs[verb])
      this.violate(`${words}${under}, wanted ${this.node.deadlineMs[verb]} ms at most`);
    return outcome;
  }
}

const shortOf = ({ containerId }: StressPod): string => containerId.slice(0, 8);

function said(outcome: StressOutcome): string {
  if (outcome.t === "ok") return "ok";
  return outcome.t === "died" ? `died: ${outcome.how}` : `code ${outcome.code}: ${outcome.message}`;
}
