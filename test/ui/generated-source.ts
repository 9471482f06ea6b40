import type { Answer, DocumentSource, Question } from "../../operator/mod.ts";
import { pause } from "../../shared/async/abortable.ts";
import type { NodeDocumentOf, NodeKind, NodesDocument } from "../../shared/documents/mod.ts";
import { documentsOfNode, type GeneratedNode } from "./generated-documents.ts";

type Documents = { [K in NodeKind]: NodeDocumentOf<K> };

/** A cluster out of nothing, of any size: documents as agents make them, which a test may change or make fail. */
export class GeneratedSource implements DocumentSource {
  readonly title = "a generated cluster";
  readonly isLive: boolean;
  readonly #documents = new Map<string, Documents>();
  readonly #revisions = new Map<string, number>();
  readonly #faults = new Map<string, string>();
  readonly #waiting = new Set<() => void>();
  /** How often each kind was asked for. */
  readonly asked = new Map<string, number>();

  constructor(nodes: readonly GeneratedNode[], isLive = true) {
    this.isLive = isLive;
    for (const node of nodes) this.#documents.set(node.name, documentsOfNode(node, nodes));
  }

  /** Replaces a document: those who wait hear of it. */
  change<K extends NodeKind>(node: string, kind: K, how: (before: NodeDocumentOf<K>) => NodeDocumentOf<K>): void {
    const documents = this.#documents.get(node);
    if (documents === undefined) throw new Error(`There is no node "${node}"`);
    const before = documents[kind] as NodeDocumentOf<K>;
    this.#documents.set(node, { ...documents, [kind]: how(before) });
    this.#revisions.set(`${node}/${kind}`, this.#revision(node, kind) + 1);
    this.#wake();
  }

  /** Questions that wait for a change. */
  get waiting(): number {
    return this.#waiting.size;
  }

  remove(node: string): void {
    this.#documents.delete(node);
  }

  async nodes(): Promise<readonly string[]> {
    return [...this.#documents.keys()];
  }

  async cluster(): Promise<NodesDocument> {
    const names = [...this.#documents.keys()];
    const nodes = names.map((name) => ({ name, addresses: [], subnets: [], ready: true }));
    return { kind: "nodes", version: 1, source: this.title, nodes, omitted: 0 };
  }

  async get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    const { kind, ifNotRevision, waitMs = 0 } = question;
    this.asked.set(kind, (this.asked.get(kind) ?? 0) + 1);
    this.#mustAnswer(node);
    if (ifNotRevision === String(this.#revision(node, kind))) {
      await this.#another(waitMs, signal, () => ifNotRevision !== String(this.#revision(node, kind)));
      this.#mustAnswer(node);
      if (ifNotRevision === String(this.#revision(node, kind))) return { t: "unchanged", revision: ifNotRevision };
    }
    const document = this.#documents.get(node)?.[kind] as NodeDocumentOf<K> | undefined;
    if (document === undefined) throw new Error(`Cannot ask node "${node}": there is none`);
    return { t: "document", revision: String(this.#revision(node, kind)), atMs: Date.now(), document };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#documents.clear();
  }

  /** The node does not answer from now on, with these words; absent: it does again. */
  fail(node: string, fault?: string): void {
    if (fault === undefined) this.#faults.delete(node);
    else this.#faults.set(node, fault);
    this.#wake();
  }

  #mustAnswer(node: string): void {
    const fault = this.#faults.get(node);
    if (fault !== undefined) throw new Error(fault);
  }

  /** Until something is changed to what is wanted, somebody fails, or nobody waits any more. */
  async #another(waitMs: number, signal: AbortSignal, isThere: () => boolean): Promise<void> {
    const over = new AbortController();
    const wake = (): void => {
      if (isThere() || this.#faults.size > 0) over.abort();
    };
    this.#waiting.add(wake);
    await pause(waitMs, AbortSignal.any([signal, over.signal]));
    this.#waiting.delete(wake);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #revision(node: string, kind: string): number {
    return this.#revisions.get(`${node}/${kind}`) ?? 1;
  }
}
