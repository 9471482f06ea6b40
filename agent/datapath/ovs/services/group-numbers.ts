/** Groups have 32 bits; those above are reserved. Half of them are enough, and 0 is no service. */
const most = 0x7fff_ffff;

/**
 * Gives services numbers. A number follows from the key alone where no other has it, so that an agent that starts
 * again gives the same ones without keeping them: flows of before stay right until they are replaced.
 */
export class GroupNumbers {
  readonly #byKey = new Map<string, number>();
  readonly #taken = new Set<number>();

  of(key: string): number {
    const before = this.#byKey.get(key);
    if (before !== undefined) return before;
    let number = (Bun.hash.xxHash32(key) % most) + 1;
    while (this.#taken.has(number)) number = (number % most) + 1;
    this.#taken.add(number);
    this.#byKey.set(key, number);
    return number;
  }

  release(key: string): void {
    const number = this.#byKey.get(key);
    if (number === undefined) return;
    this.#taken.delete(number);
    this.#byKey.delete(key);
  }
}
