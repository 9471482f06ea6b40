import type { WatchOut } from "../../shared/https/mod.ts";
import {
  type GroupMessage,
  NetworkPolicyMessage,
  type ObjectMeta,
  staleAnnotation,
} from "../../shared/proto/control-plane-messages.ts";
import type { Changes, PolicyComputation } from "../policy/mod.ts";
import { AddedEvents } from "./added-events.ts";
import {
  type ApiKind,
  addressGroupKind,
  appliedToGroupKind,
  egressGroupKind,
  networkPolicyKind,
  supportBundleCollectionKind,
} from "./api-kind.ts";
import { EventCollection, wholeState } from "./node-events.ts";
import { usualBounds, Watch, type WatchBounds, type WatchOptions } from "./watch.ts";
import { emptyMetadata, WatchEvent, type WatchedResource } from "./watch-event.ts";

export interface WatchesOptions {
  /** The computation is one of what an earlier process knew. */
  readonly isStale?: boolean;
  /** Told of all changes, before those who watch. */
  readonly published?: (changes: Changes) => void;
  readonly bounds?: WatchBounds;
  /** Told how long each publication took. */
  readonly took?: ((ms: number) => void) | undefined;
}

/** client-go's informers take only this for the end of the initial set, where they have asked for one. */
const initialEventsEnd = "k8s.io/initial-events-end";

const bookmarks: Readonly<Record<WatchedResource, (metadata: ObjectMeta) => WatchEvent>> = {
  networkpolicies: (metadata) =>
    WatchEvent.of("BOOKMARK", "networkpolicies", networkPolicyKind, () => ({
      ...NetworkPolicyMessage.absent(),
      metadata,
    })),
  addressgroups: groupBookmark("addressgroups", addressGroupKind),
  appliedtogroups: groupBookmark("appliedtogroups", appliedToGroupKind),
  egressgroups: groupBookmark("egressgroups", egressGroupKind),
  supportbundlecollections: groupBookmark("supportbundlecollections", supportBundleCollectionKind),
};

function groupBookmark(resource: WatchedResource, kind: ApiKind<GroupMessage>) {
  return (metadata: ObjectMeta) => WatchEvent.of("BOOKMARK", resource, kind, () => ({ metadata, members: [] }));
}

/**
 * All who follow their nodes. What changed goes to those whose nodes it concerns, found by the node; all others cost
 * nothing.
 */
export class Watches {
  readonly #computation: PolicyComputation;
  readonly #options: WatchesOptions;
  readonly #added = new AddedEvents();
  readonly #byNode = new Map<string, Set<Watch>>();
  #publishing: ReturnType<typeof setImmediate> | undefined;
  /** Counts the changes, as the version that answers carry. */
  #version = 1;

  constructor(computation: PolicyComputation, options: WatchesOptions = {}) {
    this.#computation = computation;
    this.#options = options;
  }

  get version(): string {
    return String(this.#version);
  }

  get count(): number {
    return this.#byNode.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** Nodes that somebody follows. */
  get nodes(): number {
    return this.#byNode.size;
  }

  /** Events that wait for those who read slowly. */
  get waiting(): number {
    return this.#byNode
      .values()
      .reduce((sum, watches) => watches.values().reduce((more, watch) => more + watch.waiting, sum), 0);
  }

  /** The node's whole state, one bookmark, and then what changes. */
  open(asked: Omit<WatchOptions, "bounds">, out: WatchOut): Watch {
    const options = { ...asked, bounds: this.#options.bounds ?? usualBounds };
    // What waits is told to the others before the state that they have is this one's beginning.
    this.publish();
    const watch = new Watch(options, out, (ended) => this.#forget(ended));
    const there = this.#byNode.get(options.node);
    if (there === undefined) this.#byNode.set(options.node, new Set([watch]));
    else there.add(watch);
    watch.begin([...wholeState(this.#computation, this.#added, options.node), this.#bookmark(options)]);
    return watch;
  }

  /** Something has changed: what comes in the same turn of the loop is published together. */
  changed(): void {
    this.#publishing ??= setImmediate(() => this.publish());
  }

  publish(): void {
    clearImmediate(this.#publishing);
    this.#publishing = undefined;
    const beganMs = performance.now();
    const changes = this.#computation.take();
    this.#added.forget(changes);
    this.#options.published?.(changes);
    const collection = new EventCollection(this.#computation, this.#added, (node) => this.#byNode.has(node));
    const events = collection.collect(changes);
    if (events.size > 0) this.#version++;
    for (const [node, { inOrder }] of events) for (const watch of this.#byNode.get(node) ?? []) watch.push(inOrder);
    this.#options.took?.(performance.now() - beganMs);
  }

  /** All who follow start over. */
  end(): void {
    clearImmediate(this.#publishing);
    for (const watches of [...this.#byNode.values()]) for (const watch of [...watches]) watch.end();
  }

  /** An empty object that ends the initial set. */
  #bookmark({ resource = "networkpolicies", isWatchList }: Pick<WatchOptions, "resource" | "isWatchList">): WatchEvent {
    const annotations = [
      ...(this.#options.isStale ? [{ key: staleAnnotation, value: "true" }] : []),
      ...(isWatchList ? [{ key: initialEventsEnd, value: "true" }] : []),
    ];
    const metadata = { ...emptyMetadata, resourceVersion: this.version, annotations };
    return bookmarks[resource](metadata);
  }

  #forget(watch: Watch): void {
    const there = this.#byNode.get(watch.node);
    if (there?.delete(watch) && there.size === 0) this.#byNode.delete(watch.node);
  }
}
