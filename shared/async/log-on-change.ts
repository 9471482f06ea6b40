import type { Logger } from "../log.ts";

/** Logs a problem that is met again and again when it comes and when its reason changes, and not each time. */
export class LogOnChange {
  readonly #logger: Logger | undefined;
  readonly #level: "info" | "warn" | "error";
  #last: string | undefined;

  constructor(logger: Logger | undefined, level: "info" | "warn" | "error" = "warn") {
    this.#logger = logger;
    this.#level = level;
  }

  /** The reason that was logged last, for as long as the problem lasts. */
  get reason(): string | undefined {
    return this.#last;
  }

  /** The problem is there, for this reason. */
  log(message: string, reason: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (reason === this.#last) return;
    this.#last = reason;
    this.#logger?.[this.#level](message, { ...fields, error: reason });
  }

  /** The problem is over: it is logged when it comes again. */
  clear(): void {
    this.#last = undefined;
  }
}
