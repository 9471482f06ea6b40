import { type ReadConf, readConf } from "../cni/dispatch.ts";
import { Fields } from "../schema/json-fields.ts";

/** A node has a few networks, and the pods of each usually bring the same text. */
const mostTexts = 16;
/** A usual text has a few hundred; long ones hold what differs from pod to pod. */
const longestBytes = 8 * 1024;

interface Kept extends ReadConf {
  readonly bytes: Uint8Array;
}

/** Network configurations by their bytes, for a daemon: one that came before is not read again for each pod. */
export class KnownConfs {
  /** The one that came first in front. */
  readonly #kept: Kept[] = [];

  /** As `readConf`. The same bytes give the same object, with what was derived from it. */
  read(bytes: Uint8Array): ReadConf {
    for (const kept of this.#kept)
      if (kept.bytes.length === bytes.length && Buffer.compare(kept.bytes, bytes) === 0) return kept;
    const read = readConf(bytes);
    if (bytes.length > longestBytes) return read;
    // Where each pod brings its own, none is worth keeping.
    if (this.#kept.length === mostTexts) this.#kept.shift();
    const kept = { bytes: bytes.slice(), text: read.text, conf: new KnownConf(read.conf.raw) };
    this.#kept.push(kept);
    return kept;
  }
}

/**
 * Remembers what it was asked for: to find that a key is missing takes a look at all others. Apart from `Fields`, of which
 * a plugin's are to stay small.
 */
class KnownConf extends Fields {
  readonly #derived = new Map<(fields: Fields) => unknown, unknown>();
  /** By the keys that were asked for, which are those of the sources. */
  readonly #found = new Map<string, unknown>();
  readonly #objects = new Map<string, Fields | undefined>();

  override get(key: string): unknown {
    const found = this.#found.get(key);
    if (found !== undefined || this.#found.has(key)) return found;
    const value = super.get(key);
    this.#found.set(key, value);
    return value;
  }

  override object(key: string): Fields | undefined {
    const known = this.#objects.get(key);
    if (known !== undefined || this.#objects.has(key)) return known;
    const value = super.object(key);
    this.#objects.set(key, value);
    return value;
  }

  override at(raw: Readonly<Record<string, unknown>>, path: string): Fields {
    return new KnownConf(raw, path);
  }

  override derive<T>(read: (fields: Fields) => T): T {
    const known = this.#derived.get(read);
    if (known !== undefined || this.#derived.has(read)) return known as T;
    const value = read(this);
    this.#derived.set(read, value);
    return value;
  }
}
