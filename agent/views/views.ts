import { pause } from "../../shared/async/abortable.ts";
import {
  isNodeKind,
  maxDocumentBytes,
  type NodeDocumentOf,
  type NodeKind,
  nodeKinds,
} from "../../shared/documents/mod.ts";
import { brief } from "../../shared/printable.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { flowsView } from "./flows-view.ts";
import { historyView } from "./history-view.ts";
import { nodeView } from "./node-view.ts";
import { addressesView, leasesView, podsView } from "./pod-views.ts";
import { callsView, findingsView, peersView } from "./state-views.ts";
import { policiesView, servicesView } from "./traffic-views.ts";
import type { ViewSources } from "./view-sources.ts";

type Maker<K extends NodeKind> = (sources: ViewSources, name: string) => NodeDocumentOf<K> | Promise<NodeDocumentOf<K>>;

interface View<K extends NodeKind> {
  readonly make: Maker<K>;
  /** Whether a name narrows the document down. */
  readonly isNamed?: true;
  /** How long a document serves everybody who asks: what it costs to make, and how soon people look again. */
  readonly freshMs: number;
}

const views: { readonly [K in NodeKind]: View<K> } = {
  node: { make: nodeView, freshMs: 500 },
  pods: { make: podsView, freshMs: 300, isNamed: true },
  leases: { make: leasesView, freshMs: 300, isNamed: true },
  addresses: { make: addressesView, freshMs: 500 },
  // Reads some megabytes at the most.
  history: { make: historyView, freshMs: 2_000, isNamed: true },
  services: { make: servicesView, freshMs: 500, isNamed: true },
  policies: { make: policiesView, freshMs: 500, isNamed: true },
  flows: { make: flowsView, freshMs: 2_000, isNamed: true },
  // Looks several times by itself, and into every namespace of a pod.
  findings: { make: findingsView, freshMs: 10_000 },
  calls: { make: callsView, freshMs: 300, isNamed: true },
  peers: { make: peersView, freshMs: 2_000 },
};

/** The longest that a question waits for a change; a caller that wants to wait longer asks again. */
const longestWaitMs = 30_000;
/** A name of what is asked for: namespace and name of a pod, or a table. */
const maxNameChars = 512;
/** Documents in memory: every kind, and what some people look at closely. The one that was asked for longest ago goes first. */
const maxKept = 32;
/**
 * Documents that are being made at a time, more than there are kinds: whoever asks for more than people look at takes
 * nothing from calls of pods.
 */
const maxMaking = 16;

export interface DocumentQuestion {
  readonly kind: string;
  readonly name: string;
  /** Empty: the document is wanted whatever it is. */
  readonly ifNotRevision: string;
  readonly waitMs: number;
}

export interface MadeDocument {
  /** Of the content. */
  readonly revision: string;
  readonly atMs: number;
  readonly json: Uint8Array;
}

interface Kept {
  readonly making: Promise<MadeDocument>;
  /** When the next one may be made, by `performance.now`. */
  freshUntil: number;
}

/** Makes the documents of an agent: once for all who ask at the same time, and not more often than people can look. */
export class Views {
  readonly #sources: ViewSources;
  readonly #ended: AbortSignal;
  readonly #kept = new Map<string, Kept>();
  #calls = 0;
  #making = 0;

  /** @param ended ends all waiting */
  constructor(sources: ViewSources, ended: AbortSignal) {
    this.#sources = sources;
    this.#ended = ended;
  }

  /** Calls of the agent's server that ask here, and that a stop or a doctor need not mind. */
  get calls(): number {
    return this.#calls;
  }

  /** `get` as a call of the agent's server. */
  async call(question: DocumentQuestion, gone: AbortSignal): Promise<MadeDocument | undefined> {
    this.#calls++;
    try {
      return await this.get(question, gone);
    } finally {
      this.#calls--;
    }
  }

  /**
   * @param gone ends the waiting
   * @returns `undefined` where the document is still that of `ifNotRevision`
   * @throws {RpcError} for a question that has no answer, else what keeps the document from being made
   */
  async get(question: DocumentQuestion, gone: AbortSignal): Promise<MadeDocument | undefined> {
    const { kind, name, ifNotRevision, waitMs } = question;
    if (!isNodeKind(kind)) {
      const is = `there is no kind "${brief(kind, 40)}", wanted one of ${nodeKinds.join(", ")}`;
      throw new RpcError(GrpcCode.invalidArgument, `Cannot show a document: ${is}`);
    }
    if (name.length > maxNameChars)
      throw new RpcError(
        GrpcCode.invalidArgument,
        `Cannot show the ${kind}: the name has ${name.length} characters, wanted at most ${maxNameChars}`,
      );
    const until = performance.now() + Math.min(Math.max(waitMs, 0), longestWaitMs);
    const signal = AbortSignal.any([gone, this.#ended]);
    for (;;) {
      const kept = this.#current(kind, views[kind].isNamed ? name : "");
      const made = await kept.making;
      if (made.revision !== ifNotRevision) return made;
      const leftMs = until - performance.now();
      if (leftMs <= 0 || signal.aborted) return undefined;
      // Past the moment from which a new one is made.
      await pause(Math.min(leftMs, Math.max(1, kept.freshUntil - performance.now() + 1)), signal);
    }
  }

  #current(kind: NodeKind, name: string): Kept {
    const key = `${kind}\n${name}`;
    const before = this.#kept.get(key);
    this.#kept.delete(key);
    if (before !== undefined && performance.now() < before.freshUntil) {
      this.#kept.set(key, before);
      return before;
    }
    // Fresh while it is made, however long that takes.
    const kept: Kept = { making: this.#make(kind, name), freshUntil: Number.POSITIVE_INFINITY };
    const made = (): void => {
      kept.freshUntil = performance.now() + views[kind].freshMs;
    };
    kept.making.then(made, made);
    this.#kept.set(key, kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= maxKept) break;
      this.#kept.delete(oldest);
    }
    return kept;
  }

  async #make(kind: NodeKind, name: string): Promise<MadeDocument> {
    if (this.#making >= maxMaking)
      throw new RpcError(
        GrpcCode.resourceExhausted,
        `Cannot show the ${kind}: ${this.#making} other documents are being made, wanted fewer; ask again later`,
      );
    this.#making++;
    try {
      return await this.#made(kind, name);
    } finally {
      this.#making--;
    }
  }

  async #made(kind: NodeKind, name: string): Promise<MadeDocument> {
    const document = await views[kind].make(this.#sources, name);
    const json = new TextEncoder().encode(JSON.stringify(document));
    if (json.length > maxBytes)
      throw new RpcError(
        GrpcCode.resourceExhausted,
        `Cannot show the ${kind}: they are ${json.length} bytes long, wanted at most ${maxBytes}; a name narrows them down`,
      );
    return { revision: Bun.hash(json).toString(16), atMs: Date.now(), json };
  }
}

/** With room for what is around it in a message. */
const maxBytes = maxDocumentBytes - 4096;
