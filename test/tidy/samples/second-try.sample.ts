import { expect, test } from "vitest";

let tries = 0;

test("passes at the second try", { retry: 1 }, () => {
  tries++;
  expect(tries).toBe(2);
});

test("passes at none", { retry: 1 }, () => {
  expect(1).toBe(3);
});
