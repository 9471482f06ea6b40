interface Applied<T> {
  readonly value: T;
  /** Whether it is unknown if the program has it. */
  isDirty: boolean;
}

/**
 * Records what was passed to the switch's program of one kind of object (pods, other nodes, services), by key, so that
 * only differences are passed on. What the program may not have accepted is dirty: it is passed again, also if it has
 * not changed, and removed if it is no longer wanted.
 */
export class AppliedRecord<T> {
  readonly #applied = new Map<string, Applied<T>>();
  readonly #refusals = new Map<string, string>();

  /** Dirty ones too. */
  *entries(): Iterable<readonly [string, T]> {
    for (const [key, { value }] of this.#applied) yield [key, value];
  }

  /** Those for which the program may have another value. */
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

  /** Records a value that the program gets or has. */
  set(key: string, value: T): void {
    this.#applied.set(key, { value, isDirty: false });
  }

  /** Forgets the refusals of these keys. */
  clearRefusals(keys: Iterable<string>): void {
    for (const key of keys) this.#refusals.delete(key);
  }

  /** The program may not have these. @param keys absent: all */
  markDirty(keys: Iterable<string> = this.#applied.keys()): void {
    for (const key of keys) {
      const applied = this.#applied.get(key);
      if (applied !== undefined) applied.isDirty = true;
    }
  }

  /** Records that the switch refuses this one, if it is still wanted. @param why the switch's reason */
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
