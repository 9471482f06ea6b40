import type { BackoffTimes } from "../../shared/async/backoff.ts";
import type { Logger } from "../../shared/log.ts";

/** Pauses between attempts; half of each is random, because after an outage all nodes ask again. */
export const registryRetry: BackoffTimes = { firstMs: 100, longestMs: 2_000, jitter: 0.5 };

/** Something that does not work with the registry now. */
export interface Trouble {
  /** Such as `follow the nodes`. */
  readonly what: string;
  /** As it was last heard. */
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

/**
 * What does not work with a registry, as reported by its users: the node continues with its cache, and people have to
 * know. Each user logs its own failures; recovery is logged here, once for all.
 */
export class RegistryHealth {
  readonly #registry: string;
  readonly #logger: Logger | undefined;
  readonly #troubles = new Map<string, Trouble>();

  /** @param registry its name, for the log */
  constructor(registry: string, logger?: Logger) {
    this.#registry = registry;
    this.#logger = logger;
  }

  /** In the order in which they began. */
  get troubles(): readonly Trouble[] {
    return [...this.#troubles.values()];
  }

  failed(what: string, reason: string): void {
    const sinceMs = this.#troubles.get(what)?.sinceMs ?? Date.now();
    this.#troubles.set(what, { what, reason, sinceMs });
  }

  works(what: string): void {
    const trouble = this.#troubles.get(what);
    if (trouble === undefined) return;
    this.#troubles.delete(what);
    const lastedMs = Math.max(0, Date.now() - trouble.sinceMs);
    this.#logger?.info("the registry works again", { registry: this.#registry, what, lastedMs });
  }
}
