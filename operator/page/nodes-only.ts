import type { NodeKind, NodesDocument } from "../../shared/documents/mod.ts";
import type { Answer, DocumentSource, Question } from "../document-source.ts";

/** Some nodes of a source, as if there were no others. */
export class NodesOnly implements DocumentSource {
  readonly title: string;
  readonly isLive: boolean;
  readonly #of: DocumentSource;
  readonly #names: readonly string[];

  /** Disposes of the source with itself. */
  constructor(of: DocumentSource, names: readonly string[]) {
    this.title = of.title;
    this.isLive = of.isLive;
    this.#of = of;
    this.#names = [...new Set(names)];
  }

  async nodes(): Promise<readonly string[]> {
    return this.#names;
  }

  async cluster(signal: AbortSignal): Promise<NodesDocument> {
    const document = await this.#of.cluster(signal);
    return { ...document, nodes: document.nodes.filter(({ name }) => this.#names.includes(name)) };
  }

  get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    return this.#of.get(node, question, signal);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#of[Symbol.asyncDispose]();
  }
}
