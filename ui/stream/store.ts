import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { NodeKind } from "../../shared/documents/mod.ts";
import { type Plain, patched } from "./patch.ts";
import type { Change, DocumentOf, Frame } from "./wire.ts";

/** What is known of one document. */
export interface Entry<T = object> {
  readonly version: number;
  /** By the clock of who made it, milliseconds since 1970. */
  readonly atMs: number;
  /** The last one that was had. */
  readonly document?: T;
  /** Why there is none, or no newer one. */
  readonly fault?: string;
}

type Entries = ReadonlyMap<string, Entry>;

/** The document of one node among those of all. */
export interface OfNode<T> extends Entry<T> {
  readonly node: string;
}

/** All documents that the page has, by topic. */
const held = signal<Entries>(new Map());

/** Puts a frame in. @returns whether it fitted; where not, everything has to be asked for anew */
export function take(frame: Frame): boolean {
  const next = changed(frame.fresh ? new Map() : held.value, frame.changes);
  if (next === undefined) return false;
  held.value = next;
  return true;
}

/** Takes away all of it: it was somebody's who is no longer signed in. */
export function forget(): void {
  held.value = new Map();
}

/** @returns `undefined` where a change begins with a version that is not there */
export function changed(before: Entries, changes: readonly Change[]): Entries | undefined {
  const after = new Map(before);
  for (const change of changes) {
    const { topic, version } = change;
    const entry = after.get(topic);
    if ("document" in change) after.set(topic, { version, atMs: change.atMs, document: change.document });
    else if ("gone" in change) after.delete(topic);
    else if ("fault" in change) after.set(topic, { atMs: 0, ...entry, version, fault: change.fault });
    else {
      if (entry?.document === undefined || entry.version !== change.from) return undefined;
      const document = patched(entry.document as Plain, change.steps);
      after.set(topic, { version, atMs: change.atMs, document });
    }
  }
  return after;
}

/** Of one topic: `cluster`, or a node's. */
export function documentOf<K extends NodeKind | "cluster">(
  kind: K,
  node?: string,
  name?: string,
): Entry<DocumentOf<K>> | undefined {
  const topic = node === undefined ? kind : topicOf(node, kind, name);
  return held.value.get(topic) as Entry<DocumentOf<K>> | undefined;
}

export const topicOf = (node: string, kind: string, name?: string): string =>
  `${node}/${kind}${name === undefined ? "" : `/${encodeURIComponent(name)}`}`;

/** Of every node, by name: the same list until one of them becomes another, so that views are not drawn for others' news. */
export function documentsOf<K extends NodeKind>(kind: K): readonly OfNode<DocumentOf<K>>[] {
  let found = kinds.get(kind);
  if (found === undefined) {
    found = ofKind(kind);
    kinds.set(kind, found);
  }
  return found.value as readonly OfNode<DocumentOf<K>>[];
}

const kinds = new Map<NodeKind, ReadonlySignal<readonly OfNode<object>[]>>();

function ofKind(kind: NodeKind): ReadonlySignal<readonly OfNode<object>[]> {
  let last: readonly OfNode<object>[] = [];
  const made = new WeakMap<Entry, OfNode<object>>();
  return computed(() => {
    const next: OfNode<object>[] = [];
    for (const [topic, entry] of held.value) {
      const [node = "", of, name] = topic.split("/");
      if (of !== kind || name !== undefined) continue;
      const known = made.get(entry) ?? { node, ...entry };
      made.set(entry, known);
      next.push(known);
    }
    next.sort((a, b) => byName(a.node, b.node));
    const isSame = next.length === last.length && next.every((each, i) => each === last[i]);
    if (!isSame) last = next;
    return last;
  });
}

/** `node-2` before `node-10`. */
const collator = new Intl.Collator("en", { numeric: true });
export const byName = (a: string, b: string): number => collator.compare(a, b);
