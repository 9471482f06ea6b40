import { deadlinesOf } from "./runtime-call.ts";
import type { Holdings, StressNode, StressOutcome, StressPod, StressVerb } from "./stress-node.ts";

/** What a node may get wrong, each in a way that a workload has to see. */
export type Lie =
  | "one address twice"
  | "another answer to the same ADD"
  | "a pod without network"
  | "a call beyond its deadline"
  | "a refusal for no reason"
  | "a plugin that dies"
  | "no address at all"
  | "garbage collected too eagerly"
  | "leases of two minds"
  | "an agent that starts anew"
  | "a descriptor that stays open";

/** The truth about one in so many calls, as a rare defect would have it. */
const rarity = 25;
/**
 * The same of GC, which comes once in some forty calls: each of seven lies of a run might have met a pod that left before
 * anybody asked for it.
 */
const gcRarity = 5;
/** By the usual four lanes. */
const callsPerSecond = 3_000;

/**
 * A node in memory that does everything right, but for one thing. It is there for what no real node does on request; it
 * proves nothing about Pipette.
 */
export class LyingNode implements StressNode {
  readonly kind = "bridge";
  readonly deadlineMs: Readonly<Record<StressVerb, number>> = deadlinesOf({});
  readonly #lie: Lie | undefined;
  readonly #addresses = new Map<string, number>();
  #made = 0;
  #calls = 0;
  /** Calls that might have been answered with the lie. */
  #chances = 0;
  #lastAddress = 1;
  #frozen = false;
  #runs = true;
  #starts = 1;

  constructor(lie?: Lie) {
    this.#lie = lie;
  }

  /** Its own clock: as long as it takes for what was asked on a machine with nothing else to do. */
  get seconds(): number {
    return this.#calls / callsPerSecond;
  }

  async makePod(): Promise<StressPod> {
    const containerId = `${String(++this.#made).padStart(8, "0")}cafe`;
    return {
      network: "pods",
      containerId,
      ifname: "eth0",
      netns: `/run/netns/${containerId}`,
      addresses: [],
      result: {},
    };
  }

  async removePod(): Promise<void> {}

  async call(verb: "ADD" | "DEL" | "CHECK", { containerId }: StressPod): Promise<StressOutcome> {
    this.#calls++;
    await Bun.sleep(1);
    if (this.#silent) return verb === "DEL" ? this.#done() : refused(11);
    if (this.#lies("a refusal for no reason")) return refused(102);
    if (this.#lies("a plugin that dies")) return { t: "died", ms: 1, how: "ended by a signal" };
    if (verb === "CHECK") return this.#addresses.has(containerId) ? this.#done() : refused(103);
    if (verb === "ADD") return this.#done(this.#add(containerId));
    this.#addresses.delete(containerId);
    return this.#done();
  }

  #add(containerId: string): unknown {
    // After its number: who is added again after his lease has gone gets the same, and only a lie is another answer.
    const own = Number.parseInt(containerId, 10) + 1;
    const fresh = this.#lies("one address twice") ? this.#lastAddress : own;
    const stood = this.#addresses.get(containerId);
    const mine = this.#lies("another answer to the same ADD") ? own + 1_000_000 : (stood ?? fresh);
    this.#lastAddress = mine;
    this.#addresses.set(containerId, mine);
    return { ips: this.#lies("no address at all") ? [] : [{ address: `10.0.0.${mine}/8`, gateway: "10.0.0.1" }] };
  }

  async gc(keep: readonly StressPod[]): Promise<StressOutcome> {
    const listed = new Set(
      keep.slice(this.#lies("garbage collected too eagerly", gcRarity) ? 1 : 0).map((pod) => pod.containerId),
    );
    for (const id of [...this.#addresses.keys()]) if (!listed.has(id)) this.#addresses.delete(id);
    return this.#done();
  }

  async status(): Promise<StressOutcome> {
    return this.#silent ? refused(50) : this.#done();
  }

  async problems(): Promise<readonly string[]> {
    return [];
  }

  #done(result?: unknown): StressOutcome {
    return { t: "ok", ms: this.#lies("a call beyond its deadline") ? 1_000_000 : 1, result };
  }

  #lies(lie: Lie, oneIn = rarity): boolean {
    return lie === this.#lie && ++this.#chances % oneIn === 0;
  }

  get #silent(): boolean {
    return this.#frozen || !this.#runs;
  }

  async startAgent(): Promise<void> {
    this.#runs = true;
    this.#starts++;
  }

  async endAgent(): Promise<void> {
    this.#runs = false;
  }

  freezeAgent(): void {
    this.#frozen = true;
  }

  thawAgent(): void {
    this.#frozen = false;
    if (this.#lie === "an agent that starts anew") this.#starts++;
  }

  agentRuns(): boolean {
    return this.#runs;
  }

  async reaches({ containerId }: StressPod): Promise<boolean> {
    if (this.#lie === "a pod without network" && containerId.endsWith("7cafe")) return false;
    return this.#addresses.has(containerId);
  }

  async disagreements(pods: readonly StressPod[]): Promise<readonly string[]> {
    if (this.#lie === "leases of two minds") return ["a lease belongs to nobody"];
    return this.#addresses.size === pods.length ? [] : [`${this.#addresses.size} leases, ${pods.length} pods`];
  }

  holdings(): Holdings {
    const leaked = this.#lie === "a descriptor that stays open" ? this.#made / 10 : 0;
    return { pid: this.#starts, residentMb: 60 + Math.sin(this.#made), descriptors: 16 + leaked, threads: 8 };
  }

  async databaseBytes(): Promise<number> {
    return 50_000;
  }

  agentLog(): readonly string[] {
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const refused = (code: number): StressOutcome => ({ t: "error", ms: 1, code, message: "Cannot do it" });
