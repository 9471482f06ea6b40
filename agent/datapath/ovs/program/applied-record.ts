interface Applied<T> {
  value: T;
  /** Nobody knows whether the program has it. */
  isDirty: boolean;
}

/**
 * What the switch's program was given of one kind of thing (pods, other nodes, services), by its keys, so that it is given
 * only what differs. What the program may not have taken is dirty: it is given again, also where it has not changed, and
 * taken away where nobody wants it any more.
 */
export class AppliedRecord<T> {
  readonly #applied = new Map<string, Applied<T>>();
  readonly #refusals = new Map<string, string>();

  /** Dirty ones too. */
  *entries(): Iterable<readonly [string, T]> {
    for (const [key, { value }] of this.#applied) yield [key, value];
  }

  /** Those of which the program may have something else than the value. */
  *dirty(): Iterable<readonly [string, T]> {
    for (const [key, { value, isDirty }] of this.#applied) if (isDirty) yield [key, value];
  }

  get(key: string): T | undefined {
    return this.#applied.get(key)?.value;
  }

  /** Whether the program has it, and `isSame` says so of the value. */
  isApplied(key: string, isSame: (value: T) => boolean): boolean {
    const applied = this.#applied.get(key);
    return applied !== undefined && !applied.isDirty && isSame(applied.value);
  }

  /** The program is given this, or has it. */
  set(key: string, value: T): void {
    this.#applied.set(key, { value, isDirty: false });
  }

  /** The program has taken these. */
  confirm(keys: Iterable<string>): void {
    for (const key of keys) this.#refusals.delete(key);
  }

  /** The program may not have these. @param keys absent: all */
  markDirty(keys: Iterable<string> = this.#applied.keys()): void {
    for (const key of keys) {
      const applied = this.#applied.get(key);
      if (applied !== undefined) applied.isDirty = true;
    }
  }

  /** The switch does not take this one, where it is still wanted. @param why what it said */
  refuse(key: string, why: string): void {
    if (!this.#applied.has(key)) return;
    this.markDirty([key]);
    this.#refusals.set(key, why);
  }

  /** @returns whether the program may have had something of it */
  delete(key: string): boolean {
    this.#refusals.delete(key);
    return this.#applied.delete(key);
  }

  /** Why the switch does not take them, by their keys. */
  get refusals(): ReadonlyMap<string, string> {
    return this.#refusals;
  }
}
