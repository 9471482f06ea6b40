import { Fields } from "../schema/json-fields.ts";

/** A node has a few networks, and the pods of each usually bring the same text. */
const mostTexts = 16;
/** A usual text has a few hundred; long ones hold what differs from pod to pod. */
const longestChars = 8 * 1024;

/** Network configurations by their texts, for a daemon: one that came before is not read again for each pod. */
export class KnownConfs {
  readonly #byText = new Map<string, Fields>();

  /** As `Fields.parse`. The same text gives the same object, with what was derived from it. */
  parse(text: string): Fields {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const read = Fields.parse(text);
    if (text.length > longestChars) return read;
    // The text that came first goes first: where each pod brings its own, none is worth keeping.
    for (const oldest of this.#byText.keys()) {
      if (this.#byText.size < mostTexts) break;
      this.#byText.delete(oldest);
    }
    const conf = new KnownConf(read.raw);
    this.#byText.set(text, conf);
    return conf;
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
    if (!this.#derived.has(read)) this.#derived.set(read, read(this));
    return this.#derived.get(read) as T;
  }
}
