import type { HcnEndpoint } from "../../protocols/hcn/mod.ts";

/**
 * The endpoints of the node, ours and all others, as they were at the last listing and by what we did since. A
 * listing asks HNS about every endpoint by itself, so it is made now and then and not for each pod.
 */
export class EndpointListing {
  readonly #list: () => Promise<readonly HcnEndpoint[]>;
  #seen = new Map<string, HcnEndpoint>();
  /** What we did since the listing began that is under way: it may not show it. */
  #since = new Map<string, HcnEndpoint | undefined>();
  #running: Promise<void> | undefined;

  constructor(list: () => Promise<readonly HcnEndpoint[]>) {
    this.#list = list;
  }

  /** Looks, or waits for the look that is under way. @throws as HNS does; what was known stays then */
  refresh(): Promise<void> {
    this.#running ??= this.#look().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #look(): Promise<void> {
    this.#since = new Map();
    const seen = new Map((await this.#list()).map((endpoint) => [endpoint.id, endpoint]));
    for (const [id, endpoint] of this.#since) {
      if (endpoint === undefined) seen.delete(id);
      else seen.set(id, endpoint);
    }
    this.#seen = seen;
  }

  note(endpoint: HcnEndpoint): void {
    this.#seen.set(endpoint.id, endpoint);
    this.#since.set(endpoint.id, endpoint);
  }

  forget(id: string): void {
    this.#seen.delete(id);
    this.#since.set(id, undefined);
  }

  get(id: string): HcnEndpoint | undefined {
    return this.#seen.get(id);
  }

  all(): readonly HcnEndpoint[] {
    return [...this.#seen.values()];
  }
}
