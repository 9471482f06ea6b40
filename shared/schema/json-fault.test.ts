import { expect, test } from "vitest";
import { faultPlace, withFaultPlace } from "./json-fault.ts";
import { Fields } from "./json-fields.ts";

test.each([
  ['{"a": 1,\n "b": }', "line 2, column 7"],
  ['{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"],
  ['{"a": 1,}', "line 1, column 9"],
  ["[1,\n2,\n]", "line 3, column 1"],
  ['{"a": 1}\ngarbage', "line 2, column 1"],
  ['{"a": tru}', "line 1, column 7"],
  ['{"a": [1, 2}', "line 1, column 12"],
  ['{"a"\n  1}', "line 2, column 3"],
  ["{'a': 1}", "line 1, column 2"],
  ['{"a": "b\n"}', "line 1, column 7"],
  ['{"a": "b', "line 1, column 7"],
  ['{"a": "\\q"}', "line 1, column 7"],
  ['{"a": {"b": [', "line 1, column 14"],
  ["{1: 2}", "line 1, column 2"],
  ["\n\n]", "line 3, column 1"],
  ['{"a": 1} }', "line 1, column 10"],
])("%j: %s", (text, wanted) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(faultPlace(text)).toBe(` (${wanted})`);
});

test("what is JSON has no fault", () => {
  const texts = [
    "{}",
    "[]",
    " [ ] ",
    '{"a":[{"b":null},true,false,-1.5e+3,"\\u00e4\\n",[[]],{}]}',
    '"x"',
    "0",
    '{"":""}',
  ];
  for (const text of texts) {
    JSON.parse(text);
    expect(faultPlace(text)).toBe("");
  }
});

test("a configuration that is none says where", () => {
  const text = '{\n  "name": "pods",\n  "ipam": {\n}';
  expect(() => {
    try {
      Fields.parse(text);
    } catch (caught) {
      throw withFaultPlace(caught, text);
    }
  }).toThrow(/^Cannot read the network configuration: .* \(line 4, column 2\), wanted one JSON object$/);
});

test("a text of a million brackets is looked at in one pass", () => {
  expect(faultPlace(`${"[".repeat(1_000_000)}x`)).toBe(" (line 1, column 1000001)");
});
