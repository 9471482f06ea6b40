import { pause } from "../async/abortable.ts";
import { Backoff } from "../async/backoff.ts";
import type { Logger } from "../log.ts";
import { traceOf } from "../reason.ts";
import { type ApiClient, answerMs, isProtobuf } from "./api-client.ts";
import { ApiError, isGone, refusalOf } from "./api-error.ts";
import { listPages, pageObjects } from "./list-pages.ts";
import { acceptOf, mapIn, pathOf, queryOf, type Resource, type Selection, textIn, textOf } from "./resource.ts";
import { type Change, type ObjectKey, type Objects, Store } from "./store.ts";
import { Patience } from "./transport.ts";
import { type WatchEvent, WatchFrames } from "./watch-frames.ts";

export interface InformerTimes {
  /** How long the server keeps one watch at most; at least half as long. */
  readonly watchMs: number;
  /** Until the headers of a watch have come. */
  readonly answerMs: number;
  /**
   * The longest silence of a watch. Once an object has changed, bookmarks come about every minute; before that, none
   * come.
   */
  readonly silenceMs: number;
  /** Pauses between attempts: doubling from the first to the longest, a random part of each. */
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
}

export const usualInformerTimes: InformerTimes = {
  // Shorter than the allowed silence, so that a quiet watch ends normally.
  watchMs: 120_000,
  answerMs,
  silenceMs: 150_000,
  retryFirstMs: 200,
  retryMostMs: 10_000,
};

export interface InformerOptions {
  /** Logs errors of handlers. */
  readonly logger: Logger;
  readonly selection?: Selection;
  readonly times?: InformerTimes;
  /** Objects of one answer to a list. */
  readonly pageSize?: number;
}

export interface InformerHandler<T> {
  /** What one answer of the server changed, in order; the store has all of it already. */
  changed(changes: readonly Change<T>[]): void;
  /** A list is complete: from now on the store holds what the server had at one moment, and all changes since. */
  listed?(): void;
  /** Also where it is the same again with another error. */
  stateChanged?(state: InformerState): void;
}

/**
 * `listing`: at first, and when a watch could not be resumed; known objects stay. `watching`: the server sends every
 * change. `failing`: retrying since that time, in milliseconds of the epoch.
 */
export type InformerState =
  | { readonly t: "listing" }
  | { readonly t: "watching" }
  | { readonly t: "failing"; readonly since: number; readonly error: ApiError }
  | { readonly t: "ended" };

/**
 * All objects of a resource, by a list and then a watch. When a watch ends, the next one resumes at the last version;
 * if that is too old, a new list is compared with the store. There is no periodic resync.
 */
export class Informer<T> implements AsyncDisposable {
  readonly #client: ApiClient;
  readonly #resource: Resource<T>;
  readonly #options: InformerOptions;
  readonly #times: InformerTimes;
  readonly #store: Store<T>;
  readonly #backoff: Backoff;
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #ended = new AbortController();
  readonly #firstList = Promise.withResolvers<void>();
  readonly #done: Promise<void>;
  #state: InformerState = { t: "listing" };
  #isSynced = false;
  /** Where the next watch begins; absent: a list is needed. */
  #version: string | undefined;

  constructor(client: ApiClient, resource: Resource<T>, options: InformerOptions) {
    this.#client = client;
    this.#resource = resource;
    this.#options = options;
    this.#times = options.times ?? usualInformerTimes;
    this.#store = new Store(resource);
    const { retryFirstMs, retryMostMs } = this.#times;
    this.#backoff = new Backoff({ firstMs: retryFirstMs, longestMs: retryMostMs, jitter: 1 });
    this.#done = this.#run();
  }

  /** The live store; incomplete before `synced`. */
  get objects(): Objects<T> {
    return this.#store;
  }

  get state(): InformerState {
    return this.#state;
  }

  /** Resolves once the first list is complete; rejects if the informer ends before. */
  get synced(): Promise<void> {
    return this.#firstList.promise;
  }

  /** Calls the handler at once with all known objects, as added, and then with each change. */
  subscribe(handler: InformerHandler<T>): Disposable {
    // A wrapper, so that the same handler can subscribe more than once.
    const own: InformerHandler<T> = {
      changed: (changes) => handler.changed(changes),
      listed: () => handler.listed?.(),
      stateChanged: (state) => handler.stateChanged?.(state),
    };
    this.#handlers.add(own);
    const known = [...this.#store.entries()].map(([key, object]): Change<T> => ({ t: "added", key, object }));
    if (known.length > 0) this.#tell(own, (to) => to.changed(known));
    if (this.#isSynced) this.#tell(own, (to) => to.listed?.());
    return { [Symbol.dispose]: () => void this.#handlers.delete(own) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort(new Error(`the ${this.#resource.plural} are followed no more`));
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ended;
    // A caller that does not await `synced` must not get an unhandled rejection.
    this.#firstList.promise.catch(() => undefined);
    while (!signal.aborted) {
      let waitMs: number;
      try {
        if (this.#version === undefined) await this.#list();
        await this.#watch();
        // After a normal end too a pause spreads the requests of many clients.
        this.#backoff.reset();
        waitMs = this.#backoff.next();
      } catch (caught) {
        if (signal.aborted) break;
        const error = ApiError.from(caught, `follow ${this.#what}`);
        if (isGone(error)) this.#version = undefined;
        waitMs = (error.retryAfterMs ?? 0) + this.#backoff.next();
        const since = this.#state.t === "failing" ? this.#state.since : Date.now();
        this.#setState({ t: "failing", since, error });
      }
      await pause(waitMs, signal);
    }
    this.#setState({ t: "ended" });
    this.#firstList.reject(signal.reason);
  }

  async #list(): Promise<void> {
    if (this.#state.t === "watching") this.#setState({ t: "listing" });
    const { selection = {}, pageSize = pageObjects } = this.#options;
    const seen = new Set<ObjectKey>();
    let version: string | undefined;
    for await (const page of listPages(this.#client, this.#resource, selection, this.#ended.signal, pageSize)) {
      const changes: Change<T>[] = [];
      for (const item of page.items) {
        const key = this.#store.put(item, changes);
        if (key !== undefined) seen.add(key);
      }
      version = page.resourceVersion;
      this.#publish(changes);
    }
    const gone: Change<T>[] = [];
    // Only after the last page: objects missing from a list that broke off are not gone.
    this.#store.retain(seen, gone);
    this.#version = version;
    this.#isSynced = true;
    this.#publish(gone);
    for (const handler of this.#handlers) this.#tell(handler, (to) => to.listed?.());
    this.#firstList.resolve();
  }

  async #watch(): Promise<void> {
    const { watchMs, answerMs: withinMs, silenceMs } = this.#times;
    const { selection = {} } = this.#options;
    const query = queryOf(selection, {
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version ?? "",
      // A random duration, so that many clients do not reconnect at once.
      timeoutSeconds: String(Math.ceil((watchMs * (0.5 + Math.random() / 2)) / 1000)),
    });
    const ask = {
      path: `${pathOf(this.#resource, selection)}?${query}`,
      action: `watch ${this.#what}`,
      accept: acceptOf(this.#resource, false),
      signal: this.#ended.signal,
    };
    using patience = new Patience();
    const answer = await this.#client.stream(ask, patience, withinMs);
    // The headers of a watch come at once; if nothing changes, the first bookmark comes a minute later.
    patience.last(silenceMs, `was silent for ${silenceMs} ms`);
    if (this.#state.t !== "watching") this.#setState({ t: "watching" });
    const frames = new WatchFrames(isProtobuf(answer) ? (this.#resource.fields ?? {}) : undefined);
    for await (const chunk of answer.body) {
      patience.last(silenceMs, `was silent for ${silenceMs} ms`);
      const changes: Change<T>[] = [];
      try {
        for (const event of frames.push(chunk)) this.#take(event, changes);
      } finally {
        // Changes before an invalid event are published, and the next watch resumes after them.
        this.#publish(changes);
      }
    }
  }

  #take({ type, object }: WatchEvent, changes: Change<T>[]): void {
    if (type === "ERROR") throw this.#refusal(object);
    const version = textIn(mapIn(object, "metadata"), "resourceVersion");
    if (version === undefined) throw new Error("an event of the watch has no resourceVersion");
    if (type === "ADDED" || type === "MODIFIED") this.#store.put(object, changes);
    else if (type === "DELETED") this.#store.delete(object, changes);
    this.#version = version;
  }

  #refusal(status: WatchEvent["object"]): ApiError {
    const { code } = status;
    return refusalOf(`watch ${this.#what}`, typeof code === "number" ? code : 500, JSON.stringify(status));
  }

  get #what(): string {
    return textOf(this.#resource, this.#options.selection);
  }

  #publish(changes: readonly Change<T>[]): void {
    if (changes.length === 0) return;
    for (const handler of this.#handlers) this.#tell(handler, (to) => to.changed(changes));
  }

  /** If a handler throws, the others are still called. */
  #tell(handler: InformerHandler<T>, how: (to: InformerHandler<T>) => void): void {
    try {
      how(handler);
    } catch (caught) {
      const error = traceOf(caught);
      this.#options.logger.error(`what follows the ${this.#what} of Kubernetes has failed`, { error });
    }
  }

  #setState(state: InformerState): void {
    this.#state = state;
    for (const handler of this.#handlers) this.#tell(handler, (to) => to.stateChanged?.(state));
  }
}
