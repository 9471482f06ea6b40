import { appendToLog } from "../../shared/os/log-file.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { Allocator } from "../allocator.ts";
import type { Lease } from "../lease.ts";
import { historyFileBytes, historyIn, readEnded } from "./history-file.ts";
import { type EndedPeriod, lineOf, periodKey, periodOf } from "./period.ts";

/** How long ended periods are gathered: nobody waits for the disk, and many DELs are one write. */
const usualGatherMs = 500;
/** How often the store is asked for what other processes have released. */
const usualLookMs = 60_000;
/** Cooling addresses of one network that a look reads: those of a minute, on any node. */
const maxLooked = 4_096;
/** Periods that wait for the disk; what is beyond that is lost, as a line of a log would be. */
const maxWaiting = 10_000;

export interface HistoryOptions {
  readonly networks: readonly string[];
  /** Told what keeps the file from being written; the same again as long as it is so. */
  report(problem: string | undefined): void;
  readonly gatherMs?: number;
  readonly lookMs?: number;
}

/**
 * Writes down who had an address until when, after it was given back: nobody who gives or takes addresses waits for it.
 * What a process of its own has released is found in the store, where it cools.
 */
export class AddressHistory implements Disposable {
  readonly #allocator: Allocator;
  readonly #dataDir: string;
  readonly #options: HistoryOptions;
  readonly #waiting: EndedPeriod[] = [];
  /** Periods that are written or wait, as long as their leases may be seen in the store. */
  #told = new Set<string>();
  readonly #looking: ReturnType<typeof setInterval>;
  #writing: ReturnType<typeof setTimeout> | undefined;

  constructor(allocator: Allocator, dataDir: string, options: HistoryOptions) {
    this.#allocator = allocator;
    this.#dataDir = dataDir;
    this.#options = options;
    this.#takeUp();
    this.#looking = setInterval(() => this.look(), options.lookMs ?? usualLookMs);
  }

  /**
   * A lease that its owner no longer has; told inside of the transaction that ends it.
   * @param wasHeld one that no pod ever used is left out: what fails again and again would push out all others
   */
  note(lease: Lease, wasHeld = true): void {
    const period = ended(lease);
    if (this.#told.has(periodKey(period)) || this.#waiting.length >= maxWaiting) return;
    this.#told.add(periodKey(period));
    if (!wasHeld) return;
    this.#waiting.push(period);
    this.#writing ??= setTimeout(() => this.#write(), this.#options.gatherMs ?? usualGatherMs);
  }

  /** Finds what others have released since the last look. Never throws: the next look finds it too. */
  look(): void {
    try {
      const cooling = this.#cooling();
      for (const lease of cooling) this.note(lease);
      const waiting = this.#waiting.map(periodKey);
      this.#told = new Set([...cooling.map((lease) => periodKey(periodOf(lease))), ...waiting]);
    } catch {
      // What keeps the store from being read is told by those who need it.
    }
  }

  /** Writes what still waits. */
  [Symbol.dispose](): void {
    clearInterval(this.#looking);
    this.#write();
  }

  /** What an earlier agent has written already is not written again. */
  #takeUp(): void {
    try {
      const cooling = new Set(this.#cooling().map((lease) => periodKey(periodOf(lease))));
      for (const period of cooling.size === 0 ? [] : readEnded(this.#dataDir))
        if (cooling.has(periodKey(period))) this.#told.add(periodKey(period));
    } catch (caught) {
      this.#options.report(reasonOf(caught));
    }
    this.look();
  }

  #cooling(): readonly Lease[] {
    const { networks } = this.#options;
    return this.#allocator.transaction((store) =>
      networks.flatMap((network) =>
        store.select({ by: "cooling", network, releasedByMs: Number.MAX_SAFE_INTEGER, limit: maxLooked }),
      ),
    );
  }

  #write(): void {
    clearTimeout(this.#writing);
    this.#writing = undefined;
    // A transaction that failed after it had told of a lease has left it as it was.
    const lines = this.#waiting
      .splice(0)
      .filter((period) => !this.#isHeld(period))
      .map(lineOf);
    if (lines.length === 0) return;
    this.#options.report(appendToLog(historyIn(this.#dataDir), lines.join("\n"), historyFileBytes));
  }

  #isHeld({ owner, generation }: EndedPeriod): boolean {
    try {
      return this.#allocator.find(owner).some((lease) => lease.generation === generation);
    } catch {
      return false;
    }
  }
}

/** Of a lease that has left: when it did, and not when its interface was gone at last. */
function ended(lease: Lease): EndedPeriod {
  const period = periodOf(lease);
  return { ...period, untilMs: Math.max(period.fromMs, period.untilMs ?? Date.now()) };
}
