import type { NodeDocumentOf, NodeKind, NodesDocument, NodeTrace, TraceRequest } from "../shared/documents/mod.ts";

/** What is wanted of one node. */
export interface Question<K extends NodeKind = NodeKind> {
  readonly kind: K;
  /** Narrows it down: `namespace/pod` or `namespace/` of pods, leases and calls; the table of flows. */
  readonly name?: string;
  /** With `waitMs`: the answer comes when the document is another than this one, or after that time. */
  readonly ifNotRevision?: string;
  /** At most `maxWaitMs`. */
  readonly waitMs?: number;
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export interface PodPlace {
  readonly node: string;
  readonly addresses: readonly string[];
  readonly hostNetwork: boolean;
}

/** How long a question may wait: less than what lies between gives up after. */
export const maxWaitMs = 25_000;

export type Answer<K extends NodeKind = NodeKind> =
  | {
      readonly t: "document";
      /** Of the content: the same revision, the same document. */
      readonly revision: string;
      /** When it was made, by the clock of who made it: ages count from there. Milliseconds since 1970. */
      readonly atMs: number;
      readonly document: NodeDocumentOf<K>;
    }
  | { readonly t: "unchanged"; readonly revision: string };

/**
 * Where documents come from: an agent's socket, a cluster by its API server, or a bundle. What it answers has been
 * read as `shared/documents` does, and is still somebody else's words: escape it before a person sees it.
 */
export interface DocumentSource extends AsyncDisposable {
  /** For people: `the agent at "/run/…"`, `https://…`, `the bundle "…"`. */
  readonly title: string;
  /** Whether a document may become another one: a bundle's does not. */
  readonly isLive: boolean;
  /** It leads to one node alone. */
  readonly isOneNode?: boolean;
  /** Those that can be asked, by name. @throws {CniError | ApiError} */
  nodes(signal: AbortSignal): Promise<readonly string[]>;
  /** The cluster as a whole. @throws {CniError | ApiError} */
  cluster(signal: AbortSignal): Promise<NodesDocument>;
  /** @throws {CniError} in a sentence that names the node: it does not answer, may not be asked, answers nonsense */
  get<K extends NodeKind>(node: string, question: Question<K>, signal: AbortSignal): Promise<Answer<K>>;
  /**
   * Reads or changes what an agent logs from now on; absent: nothing can be changed here.
   * @param level absent: only reads @returns the level in force
   * @throws {CniError}
   */
  logLevel?(node: string, level: string | undefined, signal: AbortSignal): Promise<string>;
  /** Has an agent follow packets; absent: there is none. @throws {CniError} in a sentence that names the node */
  trace?(node: string, request: TraceRequest, signal: AbortSignal): Promise<NodeTrace>;
  /** The node that a pod is on, and its addresses, where somebody knows without asking each node. @throws {CniError} */
  placeOf?(pod: PodName, signal: AbortSignal): Promise<PodPlace | "absent">;
}
