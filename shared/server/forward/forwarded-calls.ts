import type { Logger } from "../../log.ts";
import { uptimeMs } from "../../os/uptime.ts";
import { traceOf } from "../../reason.ts";
import type { CallTracker } from "../call-tracker.ts";
import type { Face, RequestHead } from "./forward-wire.ts";
import { type Caller, type CniRunner, type ForwardedCall, type Outcome, runForwarded } from "./run-forwarded.ts";

/** Calls at a time, those that wait for their turn among them: a node has a tenth of that in pods. */
export const mostForwardedCalls = 1000;

/**
 * Variables and configuration of a call together. All others wait while one is read: some 4 ms for the strangest of
 * this length (many ranges, which are all compared), a fifth of one for the usual. What is longer, such as the list of a
 * GC on a full node, is read by a process of its own.
 */
export const mostCallBytes = 8 * 1024;

/** What answers forwarded calls: the same code that a plugin's process runs. */
export interface Forwarding {
  /** Of this program. Only its twin's calls are answered: any other build's plugin may do something else. */
  readonly buildId: Uint8Array;
  /** By face; one that is missing is not served here. Whoever cannot serve now, or not this call, has it passed. */
  readonly runners: Readonly<Partial<Record<Face, CniRunner>>>;
}

/** The forwarded calls of one server, over all its connections. */
export class ForwardedCalls {
  readonly #forwarding: Forwarding;
  readonly #tracker: CallTracker;
  readonly #logger: Logger;
  #open = 0;

  constructor(forwarding: Forwarding, tracker: CallTracker, logger: Logger) {
    this.#forwarding = forwarding;
    this.#tracker = tracker;
    this.#logger = logger;
  }

  /** Whether a call of this head is one for us, and there is room for it. It is to `leave` then. */
  enter({ face, buildId, envBytes, stdinBytes }: RequestHead): boolean {
    const isOurs = buildId.every((byte, at) => byte === this.#forwarding.buildId[at]);
    if (!isOurs || envBytes + stdinBytes > mostCallBytes) return false;
    if (this.#forwarding.runners[face] === undefined || this.#open >= mostForwardedCalls) return false;
    this.#open++;
    return true;
  }

  leave(): void {
    this.#open--;
  }

  /** Never rejects. */
  async run(call: ForwardedCall, caller: Caller): Promise<Outcome> {
    const runner = this.#forwarding.runners[call.face];
    // Whoever waits no more runs it himself by now.
    if (runner === undefined || caller.signal.aborted || (uptimeMs() ?? 0) > call.untilUptimeMs) return { t: "pass" };
    let begun = false;
    try {
      return await this.#tracker.track(() => {
        begun = true;
        return runForwarded(call, caller, runner);
      });
    } catch (caught) {
      if (!begun) return { t: "pass" };
      this.#logger.error("a forwarded call ends after a fault of our own", { error: traceOf(caught) });
      return { t: "lost" };
    }
  }
}
