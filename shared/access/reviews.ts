import { Refusal } from "./refusal.ts";

/** Answers of the API server hold this long, as with its own components: who loses a right loses it after that. */
const holdMs = 10_000;
/** A thousand nodes and their operators; more are asked about again. */
const maxKept = 8192;
/** Questions under way: whoever comes with one invented token after the other does not become the API server's problem. */
const maxAsked = 100;

/** What the API server answered to questions of one kind, for a while. Failures are not kept. */
export class Reviews<T> {
  readonly #kept = new Map<string, { readonly until: number; readonly answer: T }>();
  readonly #asked = new Map<string, Promise<T>>();

  /**
   * @param ask once for all who have the same question at the same time
   * @throws {Refusal} 429 where too much is being asked; else what `ask` throws
   */
  async get(question: string, ask: () => Promise<T>): Promise<T> {
    // Tokens are in questions, and need not be in memory.
    const key = new Bun.CryptoHasher("sha256").update(question).digest("base64");
    const kept = this.#kept.get(key);
    if (kept !== undefined && kept.until > performance.now()) return kept.answer;
    const asked = this.#asked.get(key);
    if (asked !== undefined) return await asked;
    if (this.#asked.size >= maxAsked) throw new Refusal(429, "too many are asking who may ask", 1);
    const asking = this.#ask(key, ask);
    this.#asked.set(key, asking);
    return await asking;
  }

  async #ask(key: string, ask: () => Promise<T>): Promise<T> {
    try {
      const answer = await ask();
      // The oldest first.
      this.#kept.delete(key);
      for (const [old, { until }] of this.#kept) {
        if (this.#kept.size < maxKept && until > performance.now()) break;
        this.#kept.delete(old);
      }
      this.#kept.set(key, { until: performance.now() + holdMs, answer });
      return answer;
    } finally {
      this.#asked.delete(key);
    }
  }
}
