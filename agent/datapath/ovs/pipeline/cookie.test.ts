import { expect, test } from "vitest";
import { Category, cookieOf, isLearned, lastRound, learnedBit, nextRound, readCookie, roundMask } from "./cookie.ts";

test.each([
  [1, Category.pod, 7],
  [lastRound, Category.node, 0xffff_ffff],
  [0, Category.tenant, 0],
])("a cookie has its round %i, category %i and object %i", (round, category, object) => {
  const cookie = cookieOf(round, category, object);
  expect(readCookie(cookie)).toEqual({ round, category, object });
  expect((cookie & roundMask) >> 48n).toBe(BigInt(round));
  expect(isLearned(cookie)).toBe(false);
});

test("keeps 32 bits of an object, and marks what was learned by one that no object has", () => {
  expect(readCookie(cookieOf(1, Category.pod, 2 ** 32 + 5)).object).toBe(5);
  const learned = cookieOf(0, Category.service, 0xffff_ffff) | learnedBit;
  expect([isLearned(learned), isLearned(learned | cookieOf(1, 0)), isLearned(0n)]).toEqual([true, false, false]);
  expect(readCookie(learned)).toEqual({ round: 0, category: Category.service, object: 0xffff_ffff });
});

test.each([
  [undefined, 1],
  [1, 2],
  [lastRound - 1, lastRound],
  [lastRound, 1],
  [lastRound + 1, 1],
])("after round %s comes %i", (last, next) => {
  expect(nextRound(last)).toBe(next);
});
