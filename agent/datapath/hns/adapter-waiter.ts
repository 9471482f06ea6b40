import { Backoff } from "../../../shared/async/backoff.ts";
import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import type { PodPort } from "../ovs/mod.ts";

export interface AdapterWaiterOptions {
  /** Which of these ports' adapters have come, with their MTU set. */
  started(ports: readonly string[]): Promise<ReadonlySet<string>>;
  /** Has the switch take the adapter for its port. */
  connect(pod: PodPort): Promise<void>;
  readonly logger: Logger;
  /** Between the first two looks; for tests. */
  readonly firstLookMs?: number;
}

/** Pauses between two queries, doubling from the first to the longest, because each starts a PowerShell. */
const firstLookMs = 500;
const longestLookMs = 15_000;
/** How long to wait for a pod's adapter: its image may have to be pulled first. */
const startMs = 600_000;

interface Waiting {
  readonly pod: PodPort;
  readonly sinceMs: number;
}

/**
 * Waits for pods' adapters, which come when their first container starts, long after the ADD. One query covers all.
 * After too long a wait a pod is given up until an ADD, or the next start of the agent.
 */
export class AdapterWaiter implements Disposable {
  readonly #options: AdapterWaiterOptions;
  readonly #firstMs: number;
  readonly #backoff: Backoff;
  readonly #waiting = new Map<string, Waiting>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  /** Never rejects. */
  #connecting: { readonly key: string; readonly done: Promise<void> } | undefined;
  #looking = false;
  #disposed = false;

  constructor(options: AdapterWaiterOptions) {
    this.#options = options;
    this.#firstMs = options.firstLookMs ?? firstLookMs;
    this.#backoff = new Backoff({ firstMs: this.#firstMs, longestMs: longestLookMs });
  }

  /** Begins to wait, or goes on. */
  expect(pod: PodPort): void {
    this.#waiting.set(ownerKey(pod.owner), { pod, sinceMs: performance.now() });
    this.#backoff.reset();
    this.#schedule();
  }

  /** The pod is being removed: after this nothing is connected for it any more. */
  async forget(owner: Owner): Promise<void> {
    const key = ownerKey(owner);
    this.#waiting.delete(key);
    if (this.#connecting?.key === key) await this.#connecting.done;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#waiting.clear();
    clearTimeout(this.#timer);
  }

  /** An earlier scheduled query stays, so that new pods do not delay it. */
  #schedule(): void {
    const isDueSoon = this.#dueMs <= performance.now() + this.#firstMs;
    if (this.#disposed || this.#looking || this.#waiting.size === 0 || isDueSoon) return;
    clearTimeout(this.#timer);
    const pauseMs = this.#backoff.next();
    this.#timer = setTimeout(() => void this.#look(), pauseMs);
    this.#timer.unref();
    this.#dueMs = performance.now() + pauseMs;
  }

  async #look(): Promise<void> {
    this.#dueMs = Number.POSITIVE_INFINITY;
    this.#looking = true;
    try {
      const started = await this.#options.started([...this.#waiting.values()].map(({ pod }) => pod.port));
      for (const [key, waiting] of this.#waiting) {
        if (!started.has(waiting.pod.port)) {
          this.#abandon(key, waiting);
          continue;
        }
        this.#connecting = { key, done: this.#connect(key, waiting) };
        await this.#connecting.done;
      }
    } catch (caught) {
      this.#options.logger.warn("pods' adapters could not be looked for", { error: reasonOf(caught) });
    }
    this.#looking = false;
    this.#schedule();
  }

  async #connect(key: string, { pod, sinceMs }: Waiting): Promise<void> {
    const { connect, logger } = this.#options;
    try {
      await connect(pod);
      // An ADD may have come meanwhile, a DEL too.
      if (this.#waiting.get(key)?.pod === pod) this.#waiting.delete(key);
      logger.info("a pod's adapter has come", { port: pod.port, ms: Math.round(performance.now() - sinceMs) });
    } catch (caught) {
      logger.warn("a pod's adapter could not be connected yet", { port: pod.port, error: reasonOf(caught) });
    }
  }

  #abandon(key: string, { pod, sinceMs }: Waiting): void {
    if (performance.now() - sinceMs < startMs) return;
    this.#waiting.delete(key);
    const seconds = startMs / 1000;
    this.#options.logger.warn("a pod's adapter has not come", { port: pod.port, seconds });
  }
}
