import type { ApiClient } from "./api-client.ts";
import { Informer, type InformerOptions } from "./informer.ts";
import { pathOf, type Resource, type Selection } from "./resource.ts";

interface Shared {
  // Each is of the resource that it is found by.
  readonly informer: Informer<never>;
  users: number;
}

/** One user's share of an informer; when the last one is disposed of, the informer ends. */
export interface Lease<T> extends AsyncDisposable {
  readonly informer: Informer<T>;
}

/**
 * Informers of one client. All users of the same resource and selection share one watch and one copy of the objects.
 */
export class InformerPool implements AsyncDisposable {
  readonly #client: ApiClient;
  readonly #options: Omit<InformerOptions, "selection">;
  readonly #shared = new Map<Resource<never>, Map<string, Shared>>();

  constructor(client: ApiClient, options: Omit<InformerOptions, "selection">) {
    this.#client = client;
    this.#options = options;
  }

  /** @param resource the same object from all who share */
  lease<T>(resource: Resource<T>, selection: Selection = {}): Lease<T> {
    const ofResource = this.#of(resource as unknown as Resource<never>);
    const name = JSON.stringify([pathOf(resource, selection), selection.labels, selection.fields]);
    let shared = ofResource.get(name);
    if (shared === undefined) {
      const informer = new Informer(this.#client, resource, { ...this.#options, selection });
      shared = { informer: informer as unknown as Informer<never>, users: 0 };
      ofResource.set(name, shared);
    }
    const own = shared;
    own.users++;
    let isOver = false;
    return {
      informer: own.informer as unknown as Informer<T>,
      [Symbol.asyncDispose]: async () => {
        if (isOver) return;
        isOver = true;
        if (--own.users > 0) return;
        ofResource.delete(name);
        await own.informer[Symbol.asyncDispose]();
      },
    };
  }

  /** Ends all informers, also those in use. */
  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#shared.values()].flatMap((shared) => [...shared.values()]);
    this.#shared.clear();
    await Promise.all(all.map(({ informer }) => informer[Symbol.asyncDispose]()));
  }

  #of(resource: Resource<never>): Map<string, Shared> {
    const there = this.#shared.get(resource);
    if (there !== undefined) return there;
    const made = new Map<string, Shared>();
    this.#shared.set(resource, made);
    return made;
  }
}
