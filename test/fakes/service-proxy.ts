import type { RefusedService, ServicePort, ServiceProxy } from "../../agent/datapath/services.ts";
import { CniCode, CniError } from "../../shared/errors.ts";

/** The part of a data path that balances services, in memory. */
export class ServiceProxyInMemory implements ServiceProxy {
  /** What was put in force, in order. */
  readonly applied: ReadonlyMap<string, ServicePort>[] = [];
  /** Keys that cannot be put in force. */
  readonly cannot = new Set<string>();
  /** While it is there nothing can be changed. */
  away: string | undefined;
  /** Resolved when it may go on; a newer state ends the wait. */
  gate: Promise<void> = Promise.resolve();
  calls = 0;
  #isBusy = false;

  get inForce(): ReadonlyMap<string, ServicePort> {
    return this.applied.at(-1) ?? new Map();
  }

  async apply(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]> {
    if (this.#isBusy) throw new Error("two changes at a time");
    this.#isBusy = true;
    this.calls++;
    const superseded = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    await Promise.race([this.gate, superseded]);
    this.#isBusy = false;
    if (signal.aborted) return [];
    if (this.away !== undefined) throw new CniError(CniCode.tryAgainLater, this.away);
    this.applied.push(wanted);
    return [...wanted.keys()].filter((key) => this.cannot.has(key)).map((key) => ({ key, reason: "a test says so" }));
  }

  differences(): Promise<readonly string[]> {
    return Promise.resolve(this.away === undefined ? [] : [this.away]);
  }
}
