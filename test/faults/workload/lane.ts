import type { StressPod } from "../node/stress-node.ts";
import type { Workload } from "./workload.ts";

/** What a lane does to a pod that stands, and how often of a hundred times. */
const habits = [
  ["end", 42],
  ["again", 14],
  ["check", 16],
  ["ping", 14],
  ["status", 7],
  ["collect", 4],
  ["forget", 3],
] as const;

const retryMs = 200;

/** One after the other, as a runtime does it for one pod; several lanes run side by side. */
export class Lane {
  readonly #workload: Workload;
  readonly #random: (bound: number) => number;
  readonly #most: number;
  readonly #pods: StressPod[] = [];

  constructor(workload: Workload, random: (bound: number) => number, most: number) {
    this.#workload = workload;
    this.#random = random;
    this.#most = most;
  }

  /** Those with a network. */
  get pods(): readonly StressPod[] {
    return this.#pods;
  }

  async step(): Promise<void> {
    const full = this.#pods.length >= this.#most;
    if (this.#pods.length === 0 || (!full && this.#random(10) < 4)) return this.#begin();
    const pod = this.#pods[this.#random(this.#pods.length)] as StressPod;
    switch (this.#habit()) {
      case "end":
        return this.#end(pod);
      case "again":
        return this.#again(pod);
      case "check":
        await this.#workload.call("CHECK", pod);
        return;
      case "ping":
        return this.#workload.expectReach(pod);
      case "status":
        return this.#workload.status();
      case "collect":
        return this.#workload.collect();
      case "forget":
        return this.#forget(pod);
    }
  }

  /** Those that a fault has taken the network from are made anew, as a runtime does after a reboot. */
  async endLost(): Promise<void> {
    for (const pod of this.#pods.filter((each) => this.#workload.isLost(each))) await this.#end(pod);
  }

  async endAll(): Promise<void> {
    for (const pod of [...this.#pods]) await this.#end(pod);
  }

  #habit(): (typeof habits)[number][0] {
    let left = this.#random(100);
    for (const [habit, share] of habits) {
      if (left < share) return habit;
      left -= share;
    }
    return "ping";
  }

  async #begin(): Promise<void> {
    const pod = await this.#workload.makePod();
    if (await this.#workload.add(pod)) {
      this.#pods.push(pod);
      await this.#workload.expectReach(pod);
      return;
    }
    // containerd sends DEL after an ADD that failed, and makes another sandbox.
    await this.#end(pod);
  }

  /** The kubelet repeats itself; what stood before an ADD that failed goes on standing. */
  async #again(pod: StressPod): Promise<void> {
    const before = JSON.stringify(pod.result);
    if (!(await this.#workload.add(pod))) return;
    const after = JSON.stringify(pod.result);
    if (after !== before) await this.#workload.differs(pod, `ADD again answered ${after}, at first ${before}`);
  }

  async #end(pod: StressPod): Promise<void> {
    this.#take(pod);
    this.#workload.yield(pod);
    for (;;) {
      const { t } = await this.#workload.call("DEL", pod);
      if (t === "ok" || this.#workload.failed) break;
      await Bun.sleep(retryMs);
    }
    if (this.#random(2) === 0) await this.#workload.call("DEL", pod);
    await this.#workload.removePod(pod);
  }

  /** kubernetes#86944: its DEL never comes. Only GC can tell. */
  async #forget(pod: StressPod): Promise<void> {
    this.#take(pod);
    this.#workload.yield(pod);
    await this.#workload.removePod(pod);
  }

  #take(pod: StressPod): void {
    const at = this.#pods.indexOf(pod);
    if (at >= 0) this.#pods.splice(at, 1);
  }
}
