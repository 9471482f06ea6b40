import type { Document } from "./documents.ts";

/** Objects of one kind, which are also found by what each alone may have, such as an address. */
export class PlacedObjects extends Map<string, Document> {
  readonly #placesOf: (document: Document) => readonly string[];
  readonly #placesById = new Map<string, readonly string[]>();
  readonly #idsByPlace = new Map<string, Set<string>>();

  constructor(placesOf: (document: Document) => readonly string[]) {
    super();
    this.#placesOf = placesOf;
  }

  /** Who has the place: several where a test has put them there. */
  holders(place: string): ReadonlySet<string> {
    return this.#idsByPlace.get(place) ?? nobody;
  }

  override set(id: string, document: Document): this {
    this.#leave(id);
    const places = this.#placesOf(document);
    this.#placesById.set(id, places);
    for (const place of places) this.#idsByPlace.set(place, new Set([...this.holders(place), id]));
    return super.set(id, document);
  }

  override delete(id: string): boolean {
    this.#leave(id);
    return super.delete(id);
  }

  override clear(): void {
    this.#placesById.clear();
    this.#idsByPlace.clear();
    super.clear();
  }

  #leave(id: string): void {
    for (const place of this.#placesById.get(id) ?? []) {
      const ids = this.#idsByPlace.get(place);
      ids?.delete(id);
      if (ids?.size === 0) this.#idsByPlace.delete(place);
    }
    this.#placesById.delete(id);
  }
}

const nobody: ReadonlySet<string> = new Set();
