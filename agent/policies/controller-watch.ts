import { abortable, pause } from "../../shared/async/abortable.ts";
import { Backoff } from "../../shared/async/backoff.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { type ApiClient, ApiError, Patience } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { PolicyEvent } from "./events.ts";
import { PolicySet } from "./policy-set.ts";
import { type WatchListener, WatchReader } from "./watch-reader.ts";

/** Who follows the controller. What it throws ends the watch, which then starts over. */
export interface Follower {
  /** The controller has said all that there is. Answers whether it is taken; else nothing that follows is, either. */
  complete(set: PolicySet, told: { readonly tellsPods: boolean; readonly isStale: boolean }): boolean;
  changed(event: PolicyEvent): void;
  /** Something came from the controller. */
  heard(): void;
}

export interface WatchTimes {
  /** Until the headers of a watch have come. */
  readonly answerMs: number;
  /** The longest silence before all that there is has been said. */
  readonly silenceMs: number;
  /** How long a watch lasts at most: then it starts over, which mends what may have been missed. */
  readonly watchMs: number;
  /** Between attempts: doubles from the first to the longest. */
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
}

export const usualWatchTimes: WatchTimes = {
  answerMs: 10_000,
  silenceMs: 30_000,
  // As long as Antrea's last at most. A peer that is dead is noticed by HTTP/2 within a minute.
  watchMs: 2 * 3600_000,
  retryFirstMs: 200,
  retryMostMs: 10_000,
};

/** Over the longest life of a watch, for a server that ends it late. */
const overtimeMs = 30_000;

export interface ControllerWatchOptions {
  readonly node: string;
  /** Where the controller is now. It is asked anew for every attempt, and closed after it. */
  connect(): Promise<ApiClient>;
  readonly follower: Follower;
  readonly logger: Logger;
  readonly times?: WatchTimes;
}

/**
 * Follows a controller: ours on one stream, which has an order and tells when a pod is computed, or Antrea's on three,
 * which have none. Each watch begins with the full set; when one ends, or says what cannot be, all start over.
 */
export class ControllerWatch implements AsyncDisposable {
  readonly #options: ControllerWatchOptions;
  readonly #times: WatchTimes;
  readonly #ended = new AbortController();
  readonly #done: Promise<void>;
  readonly #problem: LogOnChange;
  /** While the controller is followed. */
  #client: ApiClient | undefined;

  constructor(options: ControllerWatchOptions) {
    this.#options = options;
    this.#times = options.times ?? usualWatchTimes;
    this.#problem = new LogOnChange(options.logger);
    this.#done = this.#run();
  }

  /** For requests to the controller that is followed, where one is. */
  get client(): ApiClient | undefined {
    return this.#client;
  }

  /** Why the controller is not followed now, if so. */
  get problem(): string | undefined {
    return this.#problem.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error("the controller is followed no more"));
    await this.#done;
  }

  async #run(): Promise<void> {
    const { retryFirstMs, retryMostMs } = this.#times;
    const { signal } = this.#ended;
    const backoff = new Backoff({ firstMs: retryFirstMs, longestMs: retryMostMs, jitter: 0.5 });
    while (!signal.aborted) {
      const beganMs = performance.now();
      let waitMs = 0;
      try {
        // A client that nobody waits for any more has not opened a connection.
        await using client = await abortable(this.#options.connect(), signal);
        await this.#follow(client);
      } catch (caught) {
        if (signal.aborted) return;
        if (caught instanceof ApiError) waitMs = caught.retryAfterMs ?? 0;
        this.#problem.log(
          "the controller of network policies cannot be followed, and is asked again",
          reasonOf(caught),
        );
      }
      // One that says something wrong each time is not asked for everything again at once.
      if (performance.now() - beganMs > retryMostMs) backoff.reset();
      await pause(Math.max(waitMs, backoff.next()), signal);
    }
  }

  async #follow(client: ApiClient): Promise<void> {
    try {
      await this.#watchAll(client, ["controlplane.pipette.io/v1/nodepolicies"]);
    } catch (caught) {
      // Only our own controllers have that; Antrea's say so to those alone who might ask for it (403).
      if (!(caught instanceof ApiError && (caught.status === 404 || caught.status === 403))) throw caught;
      const kinds = ["networkpolicies", "appliedtogroups", "addressgroups"];
      await this.#watchAll(
        client,
        kinds.map((kind) => `controlplane.antrea.io/v1beta2/${kind}`),
      );
    }
  }

  /** Ends with the first of these watches that ends. @throws {Error} with the first reason */
  async #watchAll(client: ApiClient, resources: readonly string[]): Promise<void> {
    const { follower } = this.#options;
    const over = new AbortController();
    const signal = AbortSignal.any([this.#ended.signal, over.signal]);
    const set = new PolicySet();
    let [incomplete, isStale, isTaken] = [resources.length, false, false];
    const listener = {
      event: (event: PolicyEvent): void => {
        if (incomplete > 0) set.apply(event);
        else if (isTaken) follower.changed(event);
      },
      complete: (stale: boolean): void => {
        isStale ||= stale;
        incomplete--;
        if (incomplete > 0) return;
        this.#client = client;
        isTaken = follower.complete(set, { tellsPods: resources.length === 1, isStale });
        this.#problem.clear();
      },
    };
    const watches = resources.map((resource) => this.#watch(client, resource, listener, signal));
    try {
      await Promise.race(watches);
    } finally {
      this.#client = undefined;
      over.abort(new Error("another watch has ended"));
      await Promise.allSettled(watches);
    }
  }

  async #watch(client: ApiClient, resource: string, listener: WatchListener, signal: AbortSignal): Promise<void> {
    const { node, follower } = this.#options;
    const action = `follow the policies of node "${node}"`;
    const reader = new WatchReader(action, listener);
    const { answerMs, silenceMs, watchMs } = this.#times;
    using patience = new Patience();
    const timeoutSeconds = Math.ceil((watchMs * (1 + Math.random())) / 2000);
    const query = new URLSearchParams({
      fieldSelector: `nodeName=${node}`,
      watch: "true",
      timeoutSeconds: String(timeoutSeconds),
    });
    const path = `/apis/${resource}?${query}`;
    const accept = "application/vnd.kubernetes.protobuf";
    const { body } = await client.stream({ path, action, accept, signal }, patience, answerMs);
    const wait = (): void =>
      reader.isComplete
        ? patience.last(timeoutSeconds * 1000 + overtimeMs, "did not end a watch in time")
        : patience.last(silenceMs, `did not say all that there is, and nothing for ${silenceMs} ms`);
    wait();
    for await (const chunk of body) {
      const wasComplete = reader.isComplete;
      reader.push(chunk);
      follower.heard();
      if (!wasComplete) wait();
    }
  }
}
