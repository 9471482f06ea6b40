import { type ApiObject, mapIn, type Resource, textIn } from "./resource.ts";

declare const keyMark: unique symbol;
/** Of an object among those of its resource: `namespace/name`, or `name` where it is in none. */
export type ObjectKey = string & { readonly [keyMark]: true };

export const objectKey = (name: string, namespace?: string): ObjectKey =>
  (namespace === undefined ? name : `${namespace}/${name}`) as ObjectKey;

/** What happened to an object, as the store shows it from then on. */
export type Change<T> =
  | { readonly t: "added"; readonly key: ObjectKey; readonly object: T }
  | { readonly t: "updated"; readonly key: ObjectKey; readonly object: T; readonly old: T }
  | { readonly t: "deleted"; readonly key: ObjectKey; readonly old: T };

/** What is kept of the objects of a resource: read it, never change it. */
export interface Objects<T> {
  readonly size: number;
  get(key: ObjectKey): T | undefined;
  entries(): IterableIterator<[ObjectKey, T]>;
  values(): IterableIterator<T>;
}

interface Kept<T> {
  readonly uid: string;
  readonly value: T;
}

/** The objects that are known, each cut down to what its resource keeps. */
export class Store<T> implements Objects<T> {
  readonly #resource: Resource<T>;
  readonly #kept = new Map<ObjectKey, Kept<T>>();

  constructor(resource: Resource<T>) {
    this.#resource = resource;
  }

  get size(): number {
    return this.#kept.size;
  }

  get(key: ObjectKey): T | undefined {
    return this.#kept.get(key)?.value;
  }

  *entries(): IterableIterator<[ObjectKey, T]> {
    for (const [key, { value }] of this.#kept) yield [key, value];
  }

  *values(): IterableIterator<T> {
    for (const { value } of this.#kept.values()) yield value;
  }

  /** Adds or updates an object; answers its key, `undefined` for one without a name. */
  put(object: ApiObject, changes: Change<T>[]): ObjectKey | undefined {
    const key = keyOf(object);
    if (key === undefined) return undefined;
    const value = this.#resource.project(object);
    const uid = textIn(mapIn(object, "metadata"), "uid") ?? "";
    const before = this.#kept.get(key);
    // An object of the same name with another uid is a new one.
    if (before !== undefined && (value === undefined || before.uid !== uid)) this.#remove(key, changes);
    if (value === undefined) return key;
    if (before === undefined || before.uid !== uid) {
      this.#kept.set(key, { uid, value });
      changes.push({ t: "added", key, object: value });
    } else if (this.#resource.same?.(before.value, value) !== true) {
      this.#kept.set(key, { uid, value });
      changes.push({ t: "updated", key, object: value, old: before.value });
    }
    return key;
  }

  /** The object is gone. */
  delete(object: ApiObject, changes: Change<T>[]): void {
    const key = keyOf(object);
    if (key !== undefined) this.#remove(key, changes);
  }

  /** Removes all objects that a complete list did not have. */
  retain(seen: ReadonlySet<ObjectKey>, changes: Change<T>[]): void {
    for (const key of this.#kept.keys()) if (!seen.has(key)) this.#remove(key, changes);
  }

  #remove(key: ObjectKey, changes: Change<T>[]): void {
    const before = this.#kept.get(key);
    if (!this.#kept.delete(key) || before === undefined) return;
    changes.push({ t: "deleted", key, old: before.value });
  }
}

function keyOf(object: ApiObject): ObjectKey | undefined {
  const metadata = mapIn(object, "metadata");
  const name = textIn(metadata, "name");
  return name === undefined ? undefined : objectKey(name, textIn(metadata, "namespace"));
}
