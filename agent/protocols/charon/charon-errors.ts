import { pause } from "../../../shared/async/abortable.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { type ByteStream, openStream } from "../ovsdb/mod.ts";
import { type CharonError, messageBytes, readError } from "./error-message.ts";

export type { CharonError } from "./error-message.ts";

/** The daemon may just be restarted. */
const againMs = 1_000;
const connectMs = 2_000;

/** Follows the errors of an IKE daemon on its socket, and whether it is there at all; connects again by itself. */
export class CharonErrors implements AsyncDisposable {
  readonly #path: string;
  readonly #tell: (error: CharonError) => void;
  readonly #ending = new AbortController();
  readonly #ended: Promise<void>;
  /** Why there is no connection. */
  #absence: string | undefined = "it has not been asked yet";

  /** @param tell called with each error */
  constructor(path: string, tell: (error: CharonError) => void) {
    this.#path = path;
    this.#tell = tell;
    this.#ended = this.#run();
  }

  /** Why the daemon cannot be heard now, in words that continue a sentence; `undefined`: it is there. */
  get absence(): string | undefined {
    return this.#absence;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      this.#absence = await this.#connection();
      await pause(againMs, signal);
    }
  }

  /** @returns why it ended, or did not come to be */
  async #connection(): Promise<string> {
    const closed = Promise.withResolvers<string>();
    const gathered = new Gathered(this.#tell);
    let stream: ByteStream | undefined;
    const end = (): void => closed.resolve("the agent ends");
    try {
      stream = await openStream(
        { t: "unix", path: this.#path },
        { data: (chunk) => gathered.add(chunk), drain: () => undefined, closed: (why) => closed.resolve(why) },
        connectMs,
      );
      this.#absence = undefined;
      this.#ending.signal.addEventListener("abort", end, { once: true });
      if (this.#ending.signal.aborted) end();
      return await closed.promise;
    } catch (caught) {
      return reasonOf(caught);
    } finally {
      this.#ending.signal.removeEventListener("abort", end);
      stream?.close();
    }
  }
}

/** Puts messages together again. */
class Gathered {
  readonly #message = new Uint8Array(new ArrayBuffer(messageBytes));
  readonly #tell: (error: CharonError) => void;
  #length = 0;

  constructor(tell: (error: CharonError) => void) {
    this.#tell = tell;
  }

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + messageBytes - this.#length);
      this.#message.set(part, this.#length);
      this.#length += part.length;
      at += part.length;
      if (this.#length < messageBytes) return;
      this.#length = 0;
      this.#tell(readError(this.#message));
    }
  }
}
