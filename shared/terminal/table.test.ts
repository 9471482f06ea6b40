import { expect, test } from "vitest";
import { formatAge, formatTable } from "./table.ts";

test.each([
  [-5000, "0s"],
  [59_999, "59s"],
  [60_000, "1m"],
  [3_599_000, "59m59s"],
  [3_600_000, "1h"],
  [90_061_000, "1d1h"],
  [86_400_000 * 400, "400d"],
])("%i ms is %s old", (ms, wanted) => {
  expect(formatAge(ms)).toBe(wanted);
});

test("a table pads all columns but the last", () => {
  expect(
    formatTable([
      ["a", "bb", "c"],
      ["aaa", "b", "cc"],
    ]),
  ).toBe("a    bb  c\naaa  b   cc\n");
});

test("what is in a cell cannot leave it, and wide characters count as wide as they are", () => {
  const lines = formatTable([
    ["a\u001b[2Jb\nc", "1"],
    ["日本", "2"],
    ["x", "\u202e3"],
  ]);
  expect(lines.split("\n")).toEqual([
    "a\\u001b[2Jb\\u000ac  1",
    `日本${" ".repeat(14)}  2`,
    `x${" ".repeat(17)}  \\u202e3`,
    "",
  ]);
});
