import { retry } from "../async/backoff.ts";
import { ReconcileLoop } from "../async/reconcile-loop.ts";
import type { Logger } from "../log.ts";
import { reasonOf } from "../reason.ts";
import type { CertificateSource, Serving } from "./serving.ts";

/** How often it is looked whether they are to be renewed, were replaced, or are published still. */
const lookMs = 30_000;
/** Until the first ones are there: the API server may start later than we do. */
const retryTimes = { firstMs: 500, longestMs: 10_000, jitter: 0.5 };

export interface FollowOptions {
  readonly logger: Logger;
  /** Tells clients whom to trust, before the server shows anything of it and from time to time. */
  readonly publish: (ca: string) => Promise<void>;
  readonly signal: AbortSignal;
  readonly everyMs?: number;
}

/** The certificates that hold now, and those that follow them. */
export class FollowedCertificates implements AsyncDisposable {
  readonly #source: CertificateSource;
  readonly #options: FollowOptions;
  readonly #loop: ReconcileLoop;
  #serving: Serving;
  /** Told of each that replaces another. */
  onReplaced: ((serving: Serving) => void) | undefined;

  /** Waits until there are some. @throws what the signal was aborted with */
  static async start(source: CertificateSource, options: FollowOptions): Promise<FollowedCertificates> {
    const { logger, signal, publish } = options;
    const failed = (caught: unknown): void =>
      logger.warn("there are no certificates to serve with yet", { error: reasonOf(caught) });
    const read = async (): Promise<Serving> => {
      const serving = await source.current();
      await publish(serving.ca);
      return serving;
    };
    return new FollowedCertificates(source, await retry(read, { ...retryTimes, signal, failed }), options);
  }

  private constructor(source: CertificateSource, serving: Serving, options: FollowOptions) {
    this.#source = source;
    this.#serving = serving;
    this.#options = options;
    const { logger, everyMs = lookMs } = options;
    this.#loop = new ReconcileLoop({
      what: "the server's certificate",
      logger,
      everyMs,
      reconcile: async () => {
        await this.#look();
        return undefined;
      },
    });
  }

  get serving(): Serving {
    return this.#serving;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  async #look(): Promise<void> {
    const serving = await this.#source.current();
    await this.#options.publish(serving.ca);
    const { cert, key } = this.#serving;
    this.#serving = serving;
    if (serving.cert === cert && serving.key === key) return;
    this.#options.logger.info("the server shows another certificate");
    this.onReplaced?.(serving);
  }
}
