import { randomUUID } from "node:crypto";
import { Refusal } from "../../shared/access/mod.ts";
import { pause } from "../../shared/async/abortable.ts";
import { Backoff } from "../../shared/async/backoff.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { Change } from "../../ui/stream/wire.ts";
import type { DocumentSource } from "../document-source.ts";
import { FollowedTopic, retryTimes, type Turns } from "./followed-topic.ts";
import { covers, type Topic, textOf, type Wish } from "./topics.ts";

/** At most four frames a second: as fast as a person reads, and slow enough that changes gather. */
const frameMs = 250;
/** A page that was away for a minute of the worst comes back without a snapshot. */
const maxKeptFrames = 256;
/** Of kept frames, as JSON: two large documents. */
const maxKeptChars = 8 * 1024 * 1024;
/** After the last one who follows a document has left: the time in which a page turns from one view to another. */
const lingerMs = 20_000;
/** Nodes come and go. */
const nodesMs = 5_000;
/** Up to this number each question waits at its agent; beyond that so many are asked side by side. */
const maxWaiting = 12;
const sideBySide = 8;

/** What one stream is told. */
export interface Follower {
  readonly wishes: readonly Wish[];
  /** Those of them that the page has followed up to the frame that it names. */
  readonly kept: readonly Wish[];
  changed(id: string, changes: readonly Change[]): void;
}

interface Kept {
  readonly number: number;
  readonly changes: readonly Change[];
  readonly chars: number;
}

/** All that any page follows, each document asked for once, and what has changed of late. */
export class Hub implements Disposable {
  readonly #source: DocumentSource;
  readonly #logger: Logger;
  /** Numbers of an earlier process mean nothing. */
  readonly #epoch = randomUUID().slice(0, 8);
  readonly #topics = new Map<string, { readonly followed: FollowedTopic; since: number; idleSince?: number }>();
  readonly #followers = new Set<Follower>();
  readonly #ended = new AbortController();
  readonly #kept: Kept[] = [];
  #keptChars = 0;
  #number = 0;
  #nodes: readonly string[] = [];
  #waiting: Change[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastFrameAt = 0;
  #asking = 0;
  readonly #queue: (() => void)[] = [];

  constructor(source: DocumentSource, logger: Logger) {
    this.#source = source;
    this.#logger = logger;
    void this.#followNodes();
  }

  /** Of the last frame that was sent. */
  get id(): string {
    return `${this.#epoch}.${this.#number}`;
  }

  /**
   * @param lastId of the last frame that the page has
   * @returns what it does not have yet; `fresh` where that is everything
   */
  follow(
    follower: Follower,
    lastId: string | undefined,
  ): { readonly fresh: boolean; readonly changes: readonly Change[] } {
    // What waits for the next frame is part of what is told now.
    this.#flush();
    this.#followers.add(follower);
    this.#adjust();
    const had = this.#numberOf(lastId);
    if (had === undefined) return { fresh: true, changes: this.snapshot(follower.wishes) };
    const changes: Change[] = [];
    for (const [text, { followed, since }] of this.#topics) {
      if (!follower.wishes.some((wish) => covers(wish, followed.topic))) continue;
      if (since > had || !follower.kept.some((wish) => covers(wish, followed.topic))) changes.push(...followed.whole);
      else changes.push(...this.#since(had, text));
    }
    return { fresh: false, changes };
  }

  /** Streams that are told of changes. */
  get followers(): number {
    return this.#followers.size;
  }

  leave(follower: Follower): void {
    this.#followers.delete(follower);
    this.#adjust();
  }

  /** All that is known of it. */
  snapshot(wishes: readonly Wish[]): readonly Change[] {
    return [...this.#topics.values()]
      .filter(({ followed }) => wishes.some((wish) => covers(wish, followed.topic)))
      .flatMap(({ followed }) => followed.whole);
  }

  [Symbol.dispose](): void {
    this.#ended.abort(new Error("the page is closed"));
    clearTimeout(this.#timer);
    for (const { followed } of this.#topics.values()) followed[Symbol.dispose]();
    this.#topics.clear();
    this.#followers.clear();
  }

  #numberOf(id: string | undefined): number | undefined {
    const [epoch, digits = ""] = (id ?? "").split(".");
    const number = Number(digits);
    if (epoch !== this.#epoch || !Number.isSafeInteger(number) || digits === "" || number > this.#number)
      return undefined;
    const oldest = this.#kept[0]?.number ?? this.#number + 1;
    return number >= oldest - 1 ? number : undefined;
  }

  #since(number: number, topic: string): readonly Change[] {
    return this.#kept
      .filter((frame) => frame.number > number)
      .flatMap(({ changes }) => changes.filter((change) => change.topic === topic));
  }

  async #followNodes(): Promise<void> {
    const { signal } = this.#ended;
    const backoff = new Backoff(retryTimes);
    let fault: string | undefined;
    while (!signal.aborted) {
      if (this.#followers.size === 0) {
        // What nobody follows any more ends now: nobody comes or leaves who would see to it.
        this.#adjust();
        await pause(this.#nodes.length === 0 ? frameMs : nodesMs, signal);
        continue;
      }
      try {
        const names = await this.#source.nodes(signal);
        if (signal.aborted) return;
        backoff.reset();
        fault = undefined;
        this.#nodes = names;
        this.#adjust();
        await pause(nodesMs, signal);
      } catch (caught) {
        if (signal.aborted) return;
        const error = reasonOf(caught);
        const isRefused = caught instanceof Refusal && caught.status === 403;
        if (isRefused && this.#nodes.length > 0) {
          this.#nodes = [];
          this.#adjust();
        }
        if (error !== fault && !isRefused) this.#logger.warn("the nodes cannot be listed", { error });
        fault = error;
        await pause(backoff.next(), signal);
      }
    }
  }

  /** Follows what is wanted, and no longer what has not been for a while. */
  #adjust(): void {
    const wanted = new Map<string, Topic>();
    for (const { wishes } of this.#followers)
      for (const wish of wishes) for (const topic of this.#topicsOf(wish)) wanted.set(textOf(topic), topic);
    const now = performance.now();
    for (const [text, topic] of wanted) {
      const entry = this.#topics.get(text);
      if (entry !== undefined) delete entry.idleSince;
      else {
        const followed = new FollowedTopic(topic, this.#source, this.#turns(), (change) => this.#changed(change));
        this.#topics.set(text, { followed, since: this.#number + 1 });
      }
    }
    for (const [text, entry] of this.#topics) {
      if (wanted.has(text)) continue;
      entry.idleSince ??= now;
      const isGone = entry.followed.topic.t === "node" && !this.#nodes.includes(entry.followed.topic.node);
      if (now - entry.idleSince < lingerMs && !isGone) continue;
      entry.followed[Symbol.dispose]();
      this.#topics.delete(text);
      if (isGone) this.#changed({ topic: text, version: 0, gone: true });
    }
  }

  #topicsOf(wish: Wish): readonly Topic[] {
    if (wish.t !== "all") return [wish];
    return this.#nodes.map((node) => ({ t: "node", node, kind: wish.kind }) as const);
  }

  #turns(): Turns {
    const hub = this;
    return {
      get waits() {
        return hub.#nodes.length <= maxWaiting;
      },
      take: async (work) => {
        if (hub.#nodes.length <= maxWaiting) return work();
        if (hub.#asking >= sideBySide) await new Promise<void>((resolve) => hub.#queue.push(resolve));
        hub.#asking++;
        try {
          return await work();
        } finally {
          hub.#asking--;
          hub.#queue.shift()?.();
        }
      },
    };
  }

  #changed(change: Change): void {
    if (this.#ended.signal.aborted) return;
    const entry = this.#topics.get(change.topic);
    // What came before it is told to nobody any more.
    if ("gone" in change && entry !== undefined) entry.since = this.#number + 1;
    this.#waiting.push(change);
    const restMs = this.#lastFrameAt + frameMs - performance.now();
    if (restMs <= 0) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), restMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting.length === 0) return;
    const changes = this.#waiting;
    this.#waiting = [];
    this.#lastFrameAt = performance.now();
    this.#number++;
    this.#keep({ number: this.#number, changes, chars: JSON.stringify(changes).length });
    for (const follower of this.#followers) {
      const own = changes.filter(({ topic }) => follower.wishes.some((wish) => coversText(wish, topic)));
      if (own.length > 0) follower.changed(this.id, own);
    }
  }

  #keep(frame: Kept): void {
    this.#kept.push(frame);
    this.#keptChars += frame.chars;
    while (this.#kept.length > maxKeptFrames || this.#keptChars > maxKeptChars)
      this.#keptChars -= this.#kept.shift()?.chars ?? 0;
  }
}

/** As `covers`, of a topic's text, which may be of a node that is gone. */
const coversText = (wish: Wish, topic: string): boolean => {
  if (wish.t !== "all") return textOf(wish) === topic;
  const [, kind, name] = topic.split("/");
  return kind === wish.kind && name === undefined;
};
