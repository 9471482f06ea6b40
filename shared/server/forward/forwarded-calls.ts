import type { Logger } from "../../log.ts";
import { uptimeMs } from "../../os/uptime.ts";
import { traceOf } from "../../reason.ts";
import type { CallTracker } from "../call-tracker.ts";
import { KnownConfs } from "../known-confs.ts";
import type { Face, RequestHead } from "./forward-wire.ts";
import { type Caller, type CniRunner, type ForwardedCall, type Outcome, runForwarded } from "./run-forwarded.ts";

/** Calls at a time, waiting ones included: ten times the pods of a node. */
export const maxForwardedCalls = 1000;

/**
 * Variables and configuration of a call together. All other calls wait while one is parsed: up to 4 ms at this length
 * (with many ranges, which are all compared), usually a fifth of a millisecond. Longer ones, such as the list of a GC
 * on a full node, run in a process of their own.
 */
export const maxCallBytes = 8 * 1024;

/** Answers forwarded calls by the same code that a plugin's process runs. */
export interface Forwarding {
  /**
   * The id of this build. Only calls of the same build are answered, since another build's plugin may behave
   * differently.
   */
  readonly buildId: Uint8Array;
  /** By plugin; a missing one is not served here. A runner that cannot serve a call now passes it back. */
  readonly runners: Readonly<Partial<Record<Face, CniRunner>>>;
}

/** The forwarded calls of one server, over all its connections. */
export class ForwardedCalls {
  readonly #forwarding: Forwarding;
  readonly #tracker: CallTracker;
  readonly #logger: Logger;
  readonly #confs = new KnownConfs();
  #open = 0;

  constructor(forwarding: Forwarding, tracker: CallTracker, logger: Logger) {
    this.#forwarding = forwarding;
    this.#tracker = tracker;
    this.#logger = logger;
  }

  /** Whether a call with this head is accepted, and there is room for it. Then it has to `leave`. */
  enter({ face, buildId, envBytes, stdinBytes }: RequestHead): boolean {
    if (Buffer.compare(buildId, this.#forwarding.buildId) !== 0 || envBytes + stdinBytes > maxCallBytes) return false;
    if (this.#forwarding.runners[face] === undefined || this.#open >= maxForwardedCalls) return false;
    this.#open++;
    return true;
  }

  leave(): void {
    this.#open--;
  }

  /** Never rejects. */
  async run(call: ForwardedCall, caller: Caller): Promise<Outcome> {
    const runner = this.#forwarding.runners[call.face];
    // A caller that no longer waits runs the call itself by now.
    if (runner === undefined || caller.signal.aborted || (uptimeMs() ?? 0) > call.untilUptimeMs) return { t: "pass" };
    let begun = false;
    try {
      return await this.#tracker.track(() => {
        begun = true;
        return runForwarded(call, caller, runner, this.#confs);
      });
    } catch (caught) {
      if (!begun) return { t: "pass" };
      this.#logger.error("a forwarded call ends after a fault of our own", { error: traceOf(caught) });
      return { t: "lost" };
    }
  }
}
