import { Refusal } from "../../shared/access/mod.ts";
import { pause } from "../../shared/async/abortable.ts";
import { Backoff, type BackoffTimes } from "../../shared/async/backoff.ts";
import { reasonOf } from "../../shared/reason.ts";
import { type Plain, stepsBetween } from "../../ui/stream/patch.ts";
import type { Change } from "../../ui/stream/wire.ts";
import { type DocumentSource, maxWaitMs } from "../document-source.ts";
import { type Topic, textOf } from "./topics.ts";

/** Between two questions. How often a document is made anew is its agent's to say: it knows what that costs. */
const usualPaceMs = 250;
/** Of a source that cannot wait for a change: many nodes at once. */
const pollMs = 5_000;
/** After a question that failed. */
export const retryTimes: BackoffTimes = { firstMs: 1_000, longestMs: 15_000, jitter: 0.3 };

/** How documents are asked for: with few nodes each question waits at its agent; with many they take turns. */
export interface Turns {
  readonly waits: boolean;
  take<T>(work: () => Promise<T>): Promise<T>;
}

/** One document, asked for again and again as long as somebody follows it. */
export class FollowedTopic implements Disposable {
  readonly topic: Topic;
  readonly #source: DocumentSource;
  readonly #turns: Turns;
  readonly #changed: (change: Change) => void;
  readonly #ended = new AbortController();
  #version = 0;
  #document: Plain | undefined;
  #atMs = 0;
  #fault: string | undefined;
  #isRefused = false;

  constructor(topic: Topic, source: DocumentSource, turns: Turns, changed: (change: Change) => void) {
    this.topic = topic;
    this.#source = source;
    this.#turns = turns;
    this.#changed = changed;
    void this.#follow();
  }

  /** All that is known of it, for who has nothing. */
  get whole(): readonly Change[] {
    const topic = textOf(this.topic);
    const version = this.#version;
    const changes: Change[] = [];
    // Somebody may have had it before.
    if (this.#isRefused) changes.push({ topic, version, gone: true });
    if (this.#document !== undefined) changes.push({ topic, version, atMs: this.#atMs, document: this.#document });
    if (this.#fault !== undefined) changes.push({ topic, version, fault: this.#fault });
    return changes;
  }

  [Symbol.dispose](): void {
    this.#ended.abort(new Error("nobody follows it any more"));
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ended;
    const backoff = new Backoff(retryTimes);
    let revision: string | undefined;
    while (!signal.aborted) {
      try {
        const next = await this.#ask(revision);
        signal.throwIfAborted();
        backoff.reset();
        revision = next.revision;
        if (next.document !== undefined) this.#take(next.document, next.atMs);
        else this.#clearFault();
        if (!this.#source.isLive) return;
        await pause(this.#paceMs(), signal);
      } catch (caught) {
        if (signal.aborted) return;
        if (caught instanceof Refusal && caught.status === 403) {
          this.#forget();
          revision = undefined;
        }
        this.#fail(reasonOf(caught));
        await pause(backoff.next(), signal);
      }
    }
  }

  #paceMs(): number {
    return this.topic.t === "node" && this.#turns.waits ? usualPaceMs : pollMs;
  }

  async #ask(ifNotRevision: string | undefined): Promise<{ revision?: string; document?: Plain; atMs: number }> {
    const { topic } = this;
    const { signal } = this.#ended;
    if (topic.t === "cluster") {
      const document = await this.#source.cluster(signal);
      return { document: { ...document }, atMs: Date.now() };
    }
    const { kind, name } = topic;
    // After a fault the question does not wait: that it is answered is the news.
    const mayWait = this.#turns.waits && ifNotRevision !== undefined && this.#fault === undefined;
    const question = {
      kind,
      ...(name === undefined ? {} : { name }),
      ...(ifNotRevision === undefined ? {} : { ifNotRevision }),
      ...(mayWait ? { waitMs: maxWaitMs } : {}),
    };
    const answer = await this.#turns.take(() => this.#source.get(topic.node, question, signal));
    if (answer.t === "unchanged") return { revision: answer.revision, atMs: Date.now() };
    return { revision: answer.revision, document: { ...answer.document }, atMs: answer.atMs };
  }

  #take(document: Plain, atMs: number): void {
    const topic = textOf(this.topic);
    const before = this.#document;
    const steps = before === undefined ? [] : stepsBetween(before, document);
    const hadFault = this.#fault !== undefined;
    this.#document = document;
    this.#atMs = atMs;
    this.#fault = undefined;
    this.#isRefused = false;
    if (before !== undefined && steps.length === 0 && !hadFault) return;
    const from = this.#version++;
    const version = this.#version;
    this.#changed(before === undefined ? { topic, version, atMs, document } : { topic, version, from, atMs, steps });
  }

  #clearFault(): void {
    if (this.#fault !== undefined && this.#document !== undefined) this.#take(this.#document, Date.now());
  }

  /** Who may not ask for it any more does not keep what they had. */
  #forget(): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    this.#document = undefined;
    this.#changed({ topic: textOf(this.topic), version: this.#version, gone: true });
  }

  #fail(fault: string): void {
    if (fault === this.#fault) return;
    this.#fault = fault;
    this.#version++;
    this.#changed({ topic: textOf(this.topic), version: this.#version, fault });
  }
}
