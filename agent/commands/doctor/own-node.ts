import type { Answer, DocumentSource, Question } from "../../../operator/mod.ts";
import { pause } from "../../../shared/async/abortable.ts";
import type { FindingsDocument, NodeDocumentOf, NodeKind, NodesDocument } from "../../../shared/documents/mod.ts";
import { documentVersion } from "../../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";

/** Between two looks of one who watches: each takes some seconds where something disagrees. */
const againMs = 3_000;

/** This node as its doctor finds it, without an agent: a source that has findings alone. */
export class OwnNode implements DocumentSource {
  readonly title = "this node";
  readonly isLive = true;
  readonly #node: string;
  readonly #look: () => Promise<FindingsDocument>;

  constructor(node: string, look: () => Promise<FindingsDocument>) {
    this.#node = node;
    this.#look = look;
  }

  async nodes(): Promise<readonly string[]> {
    return [this.#node];
  }

  async cluster(): Promise<NodesDocument> {
    const nodes = [{ name: this.#node, addresses: [], subnets: [] }];
    return { kind: "nodes", version: documentVersion, source: this.title, nodes, omitted: 0 };
  }

  async get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>> {
    const { kind, ifNotRevision, waitMs = 0 } = question;
    if (kind !== "findings")
      throw new CniError(CniCode.notAvailable, `Cannot show the ${kind} of node "${node}": only its agent knows them`);
    const until = performance.now() + waitMs;
    for (;;) {
      const document = await this.#look();
      const revision = Bun.hash(JSON.stringify(document)).toString(16);
      // A document of findings is what was asked for, which the compiler cannot see.
      const found = document as unknown as NodeDocumentOf<K>;
      if (revision !== ifNotRevision) return { t: "document", revision, atMs: Date.now(), document: found };
      if (performance.now() + againMs > until || signal.aborted) return { t: "unchanged", revision };
      await pause(againMs, signal);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
