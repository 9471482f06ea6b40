import { expect, test } from "vitest";
import { PortNumbers } from "./pod-rows.ts";

test("goes on behind the highest that is taken, and does not come back to one soon", () => {
  const numbers = new PortNumbers();
  expect(numbers.next(new Set([1, 2000, 32_768]))).toBe(2001);
  expect(numbers.next(new Set([1, 2000]))).toBe(2002);
  expect(new PortNumbers().next(new Set())).toBe(1024);
});

test("begins again at its end, passes over what is taken, and gives up where everything is", () => {
  const numbers = new PortNumbers();
  expect(numbers.next(new Set([32_767, 1024]))).toBe(1025);
  const all = new Set(Array.from({ length: 32_767 }, (_, i) => i + 1));
  expect(numbers.next(all)).toBe(0);
});
