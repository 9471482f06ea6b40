import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { hasSystemd, isWindows } from "../../../shared/os/platform.ts";
import { OpenFlowError } from "../../protocols/openflow/mod.ts";
import { OvsdbCode, OvsdbError } from "../../protocols/ovsdb/mod.ts";

/** The database, or the switch behind it, did not answer: the same may succeed later. */
const passing: ReadonlySet<string> = new Set([
  OvsdbCode.unreachable,
  OvsdbCode.late,
  OvsdbCode.disconnected,
  OvsdbCode.closed,
  OvsdbCode.notSeen,
  // The row that it refers to has gone and will be created again.
  OvsdbCode.timedOut,
]);

/** The same for the switch itself: it has not answered the request. */
const away: readonly OpenFlowError["kind"][] = ["late", "lost", "malformed"];

/** The hint in a pod's events for an Open vSwitch that does not answer. */
const whereToLook = (): string =>
  `${isWindows ? '"Get-Service ovs*"' : hasSystemd() ? '"systemctl status openvswitch-switch"' : '"pgrep -a ovs-vswitchd"'} tells whether Open vSwitch runs`;

/** Runs the work, and maps errors of Open vSwitch and its database to ours. @throws {CniError} 11, 102 */
export async function withCniErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    throw switchError(caught);
  }
}

function switchError(caught: unknown): unknown {
  if (!(caught instanceof OvsdbError || caught instanceof OpenFlowError)) return caught;
  const isPassing = caught instanceof OvsdbError ? passing.has(caught.code) : away.includes(caught.kind);
  const code = isPassing ? CniCode.tryAgainLater : CniCode.interfaceFailure;
  // Rewords "not found", which the runtime's library takes for success in a DEL's error.
  const message = caught.message
    .replace(/not found/gi, "absent")
    .replace(/no such (device|file or directory)/gi, "absent");
  return new CniError(code, message, { cause: caught, details: isPassing ? whereToLook() : undefined });
}

/** Waits for all of them; then throws the first error, if there is one. */
export async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/**
 * Waits at most so long for work that continues by itself.
 * @param action continues "Cannot …"
 * @throws {CniError} 11
 */
export const answeredWithin = <T>(limitMs: number, action: string, work: Promise<T>): Promise<T> =>
  withTimeout(work, limitMs, () => {
    const is = `the switch has not answered within ${limitMs} ms`;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`, { details: whereToLook() });
  });

/** A restarting switch is back sooner, also with thousands of flows; after this time calls no longer wait. */
const restartMs = 3_000;

/** Whether the switch is there. If it stays away, waiting calls get an error, and later ones get it at once. */
export class SwitchPresence implements Disposable {
  #away = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Aborted, with a CniError, once the switch has stayed away. */
  get signal(): AbortSignal {
    return this.#away.signal;
  }

  /** @param why continues "the switch cannot be reached" where it is away */
  update(isThere: boolean, why: () => string): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (isThere) {
      if (this.#away.signal.aborted) this.#away = new AbortController();
      return;
    }
    this.#timer = setTimeout(() => {
      const is = `${why()}, wanted ovs-vswitchd to run`;
      const message = `Cannot give a pod its port: ${is}`;
      this.#away.abort(new CniError(CniCode.tryAgainLater, message, { details: whereToLook() }));
    }, restartMs);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
