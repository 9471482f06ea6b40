/** Numbers of groups end below the reserved ones (OpenFlow 1.5.1, 7.3.4.3), and 0 means none. */
const most = 0xfffffeff;

/**
 * Gives keys numbers that are the same after a restart, for groups and cookies: a key's hash, or the next free number
 * where another key has that. Among a thousand keys a hash collision happens in one of ten thousand starts; the two
 * numbers may then be swapped, which the program handles as a change of both.
 */
export class StableIds {
  readonly #ids = new Map<string, number>();
  readonly #taken = new Set<number>();

  /** The key's number, from 1 on; the same until the key is released. */
  of(key: string): number {
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    let id = hash(key);
    while (this.#taken.has(id)) id = id >= most ? 1 : id + 1;
    this.#ids.set(key, id);
    this.#taken.add(id);
    return id;
  }

  release(key: string): void {
    const id = this.#ids.get(key);
    if (id === undefined) return;
    this.#ids.delete(key);
    this.#taken.delete(id);
  }
}

/** FNV-1a of 32 bits over the key's UTF-16 units, then folded into the numbers that may be given. */
function hash(key: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) value = Math.imul(value ^ key.charCodeAt(i), 0x01000193);
  return ((value >>> 0) % most) + 1;
}
