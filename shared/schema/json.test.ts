import { expect, test } from "vitest";
import { parseRuntimeList } from "../../agent/commands/doctor/runtime-list.ts";
import { parseJson } from "./json.ts";
import { Fields } from "./json-fields.ts";

const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);

test("what is nested deeper than anything means is refused in words, at once", () => {
  const deep = nested(60_000);
  expect(() => parseJson(deep)).toThrow("it is nested more than 256 deep");
  expect(() => parseJson('{"a":'.repeat(60_000))).toThrow("it is nested more than 256 deep");
  expect(() => Fields.parse(`{"a": ${deep}}`)).toThrow(
    "Cannot read the network configuration: it is nested more than 256 deep, wanted one JSON object",
  );
  expect(() => parseRuntimeList(deep, 1)).toThrow(
    /^Cannot read the list of the runtime: it is nested more than 256 deep/,
  );
});

test("brackets in strings are no nesting, and long texts are read as short ones are", () => {
  const text = JSON.stringify({ a: `${"[{".repeat(20_000)}\\"`, b: [nested(2)], c: "\\" });
  expect(parseJson(text)).toEqual(JSON.parse(text));
  expect(parseJson(nested(200))).toEqual(JSON.parse(nested(200)));
  expect(() => parseJson('"'.padEnd(40_000, "["))).toThrow(SyntaxError);
});
