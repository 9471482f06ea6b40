import { pause } from "../async/abortable.ts";
import type { Logger } from "../log.ts";
import { traceOf } from "../reason.ts";
import { type ApiClient, answerMs, isProtobuf } from "./api-client.ts";
import { ApiError, isGone, refusalOf } from "./api-error.ts";
import { BackOff, type BackOffTimes } from "./back-off.ts";
import { listPages, pageObjects } from "./list-pages.ts";
import { Patience } from "./patience.ts";
import { acceptOf, mapIn, pathOf, queryOf, type Resource, type Selection, textIn, textOf } from "./resource.ts";
import { type Change, type ObjectKey, type Objects, Store } from "./store.ts";
import { type WatchEvent, WatchFrames } from "./watch-frames.ts";

export interface InformerTimes extends BackOffTimes {
  /** How long the server keeps one watch; half as long at least. */
  readonly watchMs: number;
  /** Until the headers of a watch have come. */
  readonly answerMs: number;
  /** Between two words of a watch. Once an object has changed bookmarks come about every minute; before, none does. */
  readonly silenceMs: number;
}

export const usualInformerTimes: InformerTimes = {
  // It ends before its silence counts.
  watchMs: 120_000,
  answerMs,
  silenceMs: 150_000,
  retryFirstMs: 200,
  retryMostMs: 10_000,
};

export interface InformerOptions {
  /** Hears of handlers that throw. */
  readonly logger: Logger;
  readonly selection?: Selection;
  readonly times?: InformerTimes;
  /** Objects of one answer to a list. */
  readonly pageSize?: number;
}

export interface InformerHandler<T> {
  /** What one answer of the server changed, in order; the store has all of it already. */
  changed(changes: readonly Change<T>[]): void;
  /** A list was taken in to its end: from now on the store is what the server had at one time, and what came since. */
  listed?(): void;
  /** Also where it is the same again with another error. */
  stateChanged?(state: InformerState): void;
}

/**
 * `listing` at first and where a watch could not go on; what is known stays. `watching`: the server tells of every
 * change. `failing`: it is asked again and again since then, in milliseconds of the epoch.
 */
export type InformerState =
  | { readonly t: "listing" }
  | { readonly t: "watching" }
  | { readonly t: "failing"; readonly since: number; readonly error: ApiError }
  | { readonly t: "ended" };

/**
 * All objects of a resource, by a list and then by what changes. A watch that ends goes on from the last version that it
 * told; where that is too old, a new list is compared with what is known. So nothing is ever asked for again to be sure.
 */
export class Informer<T> implements AsyncDisposable {
  readonly #client: ApiClient;
  readonly #resource: Resource<T>;
  readonly #options: InformerOptions;
  readonly #times: InformerTimes;
  readonly #store: Store<T>;
  readonly #backOff: BackOff;
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
    this.#backOff = new BackOff(this.#times);
    this.#done = this.#run();
  }

  /** What is known; as it changes, and not whole before `synced`. */
  get objects(): Objects<T> {
    return this.#store;
  }

  get state(): InformerState {
    return this.#state;
  }

  /** Settles once the first list is whole; rejects where this ends before. */
  get synced(): Promise<void> {
    return this.#firstList.promise;
  }

  /** The handler hears at once of what is known, as added, and then of each change. */
  subscribe(handler: InformerHandler<T>): Disposable {
    // Each subscription is one of its own, also of the same handler.
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
    // Whoever does not ask does not have to hear of the end.
    this.#firstList.promise.catch(() => undefined);
    while (!signal.aborted) {
      let waitMs: number;
      try {
        if (this.#version === undefined) await this.#list();
        await this.#watch();
        waitMs = this.#backOff.succeeded();
      } catch (caught) {
        if (signal.aborted) break;
        const error = ApiError.from(caught, `follow ${this.#what}`);
        if (isGone(error)) this.#version = undefined;
        waitMs = this.#backOff.failed(error.retryAfterMs);
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
    // Not before its end: what a list that breaks off has not told of is not gone.
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
      // Of many clients, not all come again at once.
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
    // The headers of a watch come at once, and where nothing changes its first word is a bookmark a minute later.
    patience.last(silenceMs, `was silent for ${silenceMs} ms`);
    if (this.#state.t !== "watching") this.#setState({ t: "watching" });
    const frames = new WatchFrames(isProtobuf(answer) ? (this.#resource.fields ?? {}) : undefined);
    for await (const chunk of answer.body) {
      patience.last(silenceMs, `was silent for ${silenceMs} ms`);
      const changes: Change<T>[] = [];
      try {
        for (const event of frames.push(chunk)) this.#take(event, changes);
      } finally {
        // What came before an event that is none has been said, and the next watch goes on behind it.
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

  /** A handler that throws is a defect of its own; the others hear all the same. */
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
