import { expect, test } from "vitest";

test("passes", () => {
  expect(1).toBe(1);
});

test("fails", () => {
  expect("is").toBe("should be");
});

test("cannot run", ({ skip }) => {
  skip("the moon is not full");
});

test("is skipped in silence", ({ skip }) => {
  skip();
});
