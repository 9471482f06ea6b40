import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isTest, sources } from "./sources.ts";

interface Row {
  readonly item: string;
  readonly files: readonly string[];
}

/** The tables under "What hurt others": the item first, the files with its tests last. */
const rows: readonly Row[] = readFileSync("docs/reliability.md", "utf8")
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, item = ""]) => /^(\d+(\.\d+)?|runner-up \S+)$/.test(item))
  .map((cells) => ({
    item: cells[1] ?? "",
    files: [...(cells.at(-2) ?? "").matchAll(/`([^`]+\.test\.ts)`/g)].map(([, file = ""]) => file),
  }));

/** Names of tests and groups that begin with an item. */
const named = sources("*.test.ts")
  .filter(({ path }) => isTest(path) && !path.startsWith("test/tidy/"))
  .flatMap(({ path, text }) =>
    [...text.matchAll(/["'`]peers (\d+(?:\.\d+)?|runner-up \S+): /g)].map(([, item = ""]) => ({ path, item })),
  );

test("each of the twenty items is in the table once, in order", () => {
  const numbers = rows.map(({ item }) => item).filter((item) => /^\d+$/.test(item));
  expect(numbers).toEqual(Array.from({ length: 20 }, (_, i) => String(i + 1)));
  expect(new Set(rows.map(({ item }) => item)).size).toBe(rows.length);
});

test.each(rows)("item $item has a test of its number in each file that the table names", ({ item, files }) => {
  const having = named.filter((one) => one.item === item).map(({ path }) => path);
  expect(files.filter((file) => !having.some((path) => path.endsWith(`/${file}`)))).toEqual([]);
  expect(files.length).toBeGreaterThan(0);
});

test("no test has the number of an item that the table does not know", () => {
  const known = new Set(rows.map(({ item }) => item));
  expect(named.filter(({ item }) => !known.has(item))).toEqual([]);
});
