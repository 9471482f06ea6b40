import { abortable } from "../../../shared/async/abortable.ts";
import type { NodeKind, NodesDocument } from "../../../shared/documents/mod.ts";
import type { Answer, Question } from "../../document-source.ts";
import type { AgentsSource } from "./person-source.ts";

/** Questions that are the same at the same time are asked once: agents do not notice how many look at them. */
export class SharedSource implements AgentsSource {
  readonly title: string;
  readonly isLive: boolean;
  readonly #of: AgentsSource;
  readonly #asked = new Map<
    string,
    { readonly answer: Promise<unknown>; readonly stop: AbortController; waiting: number }
  >();

  /** Disposes of the source with itself. */
  constructor(of: AgentsSource) {
    this.title = of.title;
    this.isLive = of.isLive;
    this.#of = of;
  }

  nodes(signal: AbortSignal): Promise<readonly string[]> {
    return this.#once("nodes", signal, (shared) => this.#of.nodes(shared));
  }

  cluster(signal: AbortSignal): Promise<NodesDocument> {
    return this.#once("cluster", signal, (shared) => this.#of.cluster(shared));
  }

  get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    const { kind, name, ifNotRevision, waitMs } = question;
    const key = JSON.stringify([node, kind, name, ifNotRevision, waitMs]);
    return this.#once(key, signal, (shared) => this.#of.get(node, question, shared));
  }

  proxyNameOf(node: string, signal: AbortSignal): Promise<string> {
    return this.#once(`name of ${node}`, signal, (shared) => this.#of.proxyNameOf(node, shared));
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#of[Symbol.asyncDispose]();
  }

  /** The question ends early when the last who waits for it has gone. */
  async #once<T>(key: string, signal: AbortSignal, ask: (shared: AbortSignal) => Promise<T>): Promise<T> {
    const asked = this.#asked.get(key) ?? this.#ask(key, ask);
    asked.waiting++;
    try {
      return (await abortable(asked.answer, signal)) as T;
    } finally {
      if (--asked.waiting === 0) {
        if (this.#asked.get(key) === asked) this.#asked.delete(key);
        asked.stop.abort(new Error("nobody waits for the answer any more"));
      }
    }
  }

  #ask(key: string, ask: (shared: AbortSignal) => Promise<unknown>) {
    const stop = new AbortController();
    const asked = { answer: ask(stop.signal), stop, waiting: 0 };
    this.#asked.set(key, asked);
    const forget = (): void => {
      if (this.#asked.get(key) === asked) this.#asked.delete(key);
    };
    asked.answer.then(forget, forget);
    return asked;
  }
}
