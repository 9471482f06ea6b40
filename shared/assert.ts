/** A broken invariant is our own fault: say which one, where, and stop before it does harm. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Error(`Broken invariant: ${invariant}`);
}

/** Ends a switch over a closed union: the compiler refuses a forgotten member. */
export function unreachable(value: never): never {
  throw new Error(`Broken invariant: unexpected value ${JSON.stringify(value)}`);
}
