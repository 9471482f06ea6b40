import { expect, test } from "vitest";
import { nearlyFull } from "./conntrack-usage.ts";

test.each([
  [0, 1000, false],
  [799, 1000, false],
  [800, 1000, true],
  [1000, 1000, true],
  // A table without a bound, or one that nobody can read.
  [10, 0, false],
  [Number.NaN, 1000, false],
  [800, Number.NaN, false],
])("a table with %i of %i connections is nearly full: %s", (held, most, isFull) => {
  expect(nearlyFull("a pod", held, most)).toEqual(
    isFull
      ? [`connection tracking of a pod holds ${held} of ${most} connections: when it is full, no pod can open another`]
      : [],
  );
});
