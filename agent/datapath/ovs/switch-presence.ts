import { withTimeout } from "../../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { hasSystemd } from "../../../shared/os/systemd.ts";
import { OpenFlowError } from "../../protocols/openflow/mod.ts";
import { OvsdbCode, OvsdbError } from "../../protocols/ovsdb/mod.ts";

/** The database, or the switch behind it, did not answer: another time it may. */
const passing: ReadonlySet<string> = new Set([
  OvsdbCode.unreachable,
  OvsdbCode.late,
  OvsdbCode.disconnected,
  OvsdbCode.closed,
  OvsdbCode.notSeen,
  // The row that it hangs on has gone: it is made again.
  OvsdbCode.timedOut,
]);

/** The same of the switch itself: it says nothing of what was asked for. */
const away: readonly OpenFlowError["kind"][] = ["late", "lost", "malformed"];

/** For the events of pods, of an Open vSwitch that gives no answer. */
const whereToLook = (): string =>
  `${isWindows ? '"Get-Service ovs*"' : hasSystemd() ? '"systemctl status openvswitch-switch"' : '"pgrep -a ovs-vswitchd"'} tells whether Open vSwitch runs`;

/** Does it, with the errors of Open vSwitch and its database as the caller of a verb sees them. @throws {CniError} 11, 102 */
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
  // The runtime's library takes these words in a DEL's error for success.
  const message = caught.message
    .replace(/not found/gi, "absent")
    .replace(/no such (device|file or directory)/gi, "absent");
  return new CniError(code, message, { cause: caught, details: isPassing ? whereToLook() : undefined });
}

/** All of them to their end; then the first error, if there is one. */
export async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/**
 * Waits no longer than this for what goes on by itself.
 * @param action continues "Cannot …"
 * @throws {CniError} 11
 */
export const answeredWithin = <T>(limitMs: number, action: string, work: Promise<T>): Promise<T> =>
  withTimeout(work, limitMs, () => {
    const is = `the switch has not answered within ${limitMs} ms`;
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`, { details: whereToLook() });
  });

/** A switch that restarts is back sooner, also one with thousands of flows; one that is away for longer, nobody waits for. */
const restartMs = 3_000;

/** Whether the switch is there: who waits for one that stays away hears of it, and who comes later does not wait at all. */
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
