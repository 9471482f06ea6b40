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
    const conf = Fields.parse(text);
    if (text.length > longestChars) return conf;
    // The text that came first goes first: where each pod brings its own, none is worth keeping.
    for (const oldest of this.#byText.keys()) {
      if (this.#byText.size < mostTexts) break;
      this.#byText.delete(oldest);
    }
    this.#byText.set(text, conf);
    return conf;
  }
}
