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

/** Apart from `Fields`, of which a plugin's are to stay small. */
class KnownConf extends Fields {
  readonly #derived = new Map<(fields: Fields) => unknown, unknown>();

  override derive<T>(read: (fields: Fields) => T): T {
    if (!this.#derived.has(read)) this.#derived.set(read, read(this));
    return this.#derived.get(read) as T;
  }
}
