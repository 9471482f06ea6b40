import { expect, test } from "vitest";
import { nearest } from "./near.ts";

test.each([
  ["exlude", ["exclude", "routes"], "exclude"],
  ["ecxlude", ["exclude"], "exclude"],
  ["SUBNETS", ["subnet", "sticky"], "subnet"],
  ["migx", ["mig", "pods"], "mig"],
  ["lst", ["list", "last"], "list"],
  ["nope", ["pods", "mig"], undefined],
  ["", ["a"], "a"],
  ["x".repeat(1_000_000), ["exclude"], undefined],
] as const)("%.20s is taken for what it was meant as", (typed, words, wanted) => {
  expect(nearest(typed, words)).toBe(wanted);
});
