import type { HcnEndpoint } from "../../protocols/hcn/mod.ts";

/**
 * All endpoints of the node, from the last listing and our own changes since. A listing queries HNS for every single
 * endpoint, so it is made periodically and not for each pod.
 */
export class EndpointListing {
  readonly #list: () => Promise<readonly HcnEndpoint[]>;
  #seen = new Map<string, HcnEndpoint>();
  /** Our changes since the running listing began, which it may not show. */
  #since = new Map<string, HcnEndpoint | undefined>();
  #running: Promise<void> | undefined;

  constructor(list: () => Promise<readonly HcnEndpoint[]>) {
    this.#list = list;
  }

  /** Lists again, or waits for the running listing. @throws as HNS does; the last listing stays then */
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
