import { CniCode, CniError } from "../errors.ts";
import type { EndSignal } from "./late-signal.ts";

export interface WaitOptions {
  /** For the messages: `ADD of "<sandbox>"`. */
  readonly what: string;
  /** Ends the wait when the caller has gone; work that has begun runs to its end. */
  readonly signal?: EndSignal;
  /** Bound of the wait; absent: as long as it takes. */
  readonly timeoutMs?: number;
}

interface Waiter {
  readonly begin: () => void;
  readonly drop: (error: CniError) => void;
}

/**
 * One lock per key: calls for one container run one after the other, in the order in which they came; different
 * containers do not wait for each other. A waiter whose caller has gone, or whose time is up, leaves without any
 * effect.
 */
export class KeyedMutex {
  readonly #waiting = new Map<string, Waiter[]>();
  readonly #longestQueue: number;
  #running = 0;
  #whenIdle: (() => void)[] = [];

  constructor(longestQueue: number) {
    this.#longestQueue = longestQueue;
  }

  /** How many works run now. */
  get running(): number {
    return this.#running;
  }

  /**
   * Runs `work` when the key is free.
   * @throws {CniError} code 11 where the wait ended without it: the caller has gone, the time is up, the queue is full
   */
  async run<T>(key: string, options: WaitOptions, work: () => Promise<T>): Promise<T> {
    const turn = this.#enter(key, options);
    if (turn !== undefined) await turn;
    this.#running++;
    try {
      // The caller may have gone between the start signal and now.
      if (options.signal?.aborted === true) throw gone(options.what);
      return await work();
    } finally {
      this.#running--;
      this.#leave(key);
    }
  }

  /** Whether a call holds the key, or waits for it. */
  isBusy(key: string): boolean {
    return this.#waiting.has(key);
  }

  /** Resolves when nothing runs and nothing waits. */
  idle(): Promise<void> {
    if (this.#waiting.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** `undefined`: the key is free, and nothing has to be waited for. */
  #enter(key: string, options: WaitOptions): Promise<void> | undefined {
    if (options.signal?.aborted === true) throw gone(options.what);
    const queue = this.#waiting.get(key);
    if (queue === undefined) {
      this.#waiting.set(key, []);
      return undefined;
    }
    if (queue.length >= this.#longestQueue) {
      const problem = `${queue.length} calls wait for the same container, wanted at most ${this.#longestQueue}`;
      throw new CniError(CniCode.tryAgainLater, `Cannot begin ${options.what}: ${problem}`);
    }
    return this.#wait(queue, options);
  }

  #wait(queue: Waiter[], { what, signal, timeoutMs }: WaitOptions): Promise<void> {
    // Created when the wait begins, so that its stack names the caller.
    const late = new CniError(
      CniCode.tryAgainLater,
      `Cannot begin ${what}: an earlier call for the same container still runs after ${timeoutMs} ms`,
    );
    return new Promise<void>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter = {
        begin: () => {
          settle();
          resolve();
        },
        drop: (error) => {
          settle();
          queue.splice(queue.indexOf(waiter), 1);
          reject(error);
        },
      };
      const onAbort = (): void => waiter.drop(gone(what));
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => waiter.drop(late), timeoutMs);
      signal?.addEventListener("abort", onAbort, { once: true });
      queue.push(waiter);
    });
  }

  #leave(key: string): void {
    const next = this.#waiting.get(key)?.shift();
    if (next !== undefined) {
      next.begin();
      return;
    }
    this.#waiting.delete(key);
    if (this.#waiting.size > 0) return;
    const idle = this.#whenIdle;
    this.#whenIdle = [];
    for (const resolve of idle) resolve();
  }
}

const gone = (what: string): CniError =>
  new CniError(CniCode.tryAgainLater, `Cannot begin ${what}: its caller has gone`);
