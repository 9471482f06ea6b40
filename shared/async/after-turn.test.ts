import { expect, test } from "vitest";
import { afterTurn } from "./after-turn.ts";
import { nextTurn } from "./next-turn.ts";

test("works run in their order after this turn, and those that they add after the next", async () => {
  const ran: string[] = [];
  afterTurn(() => {
    ran.push("a");
    afterTurn(() => ran.push("c"));
  });
  afterTurn(() => ran.push("b"));
  await undefined;
  expect(ran).toEqual([]);
  await nextTurn();
  expect(ran).toEqual(["a", "b"]);
  await nextTurn();
  expect(ran).toEqual(["a", "b", "c"]);
});
