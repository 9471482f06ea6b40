import { expect, test } from "vitest";
import { type CrossCheck, readDocument, readYaml } from "./read-document.ts";
import { anyText, integer, list, object, opaque, optional, required } from "./schema.ts";

const plain = opaque("a map", () => undefined);
const schema = object({ name: required(anyText), ports: optional(list(integer(1, 9), 0, 200)), more: optional(plain) });

const problemsOf = (text: string, check?: CrossCheck<{ readonly name: string }>): readonly string[] => {
  const read = readYaml(text, "f", schema, check);
  return read.t === "ok" ? [] : read.problems;
};

test.each([
  ["of a value", "name: a\nports: [1, 0]\n", "f:2:12: "],
  ["of a key", "name: a\n  \nport: 1\n", "f:3:1: "],
  ["of an empty value", "name:\n", "f:1:6: "],
  ["of what a key is missing in", "ports: [1]\n", "f:1:1: "],
  ["of an alias", "more: { x: &x 0 }\nname: a\nports: [*x]\n", "f:3:9: "],
  ["in flow as in block", '{ "name": "a",\n  "ports": [\n 10 ] }', "f:3:2: "],
])("tells the place %s", (_what, text, place) => {
  expect(problemsOf(text)).toEqual([expect.stringContaining(place)]);
});

test("the faults stand in the order of the file", () => {
  expect(problemsOf("ports: [0]\nx: 1\nname: [a]\n").map((problem) => problem.slice(0, 5))).toEqual([
    "f:1:9",
    "f:2:1",
    "f:3:7",
  ]);
});

test("what does not fit together is looked for once each value is right", () => {
  const check: CrossCheck<{ readonly name: string }> = ({ name }, findings) => findings.add(["name"], `"${name}"`);
  expect(problemsOf("ports: [1]\nname: b\n", check)).toEqual(['f:2:7: "name" is "b"']);
  expect(problemsOf("ports: [0]\nname: b\n", check)).toHaveLength(1);
});

test("a key of any name is only a key", () => {
  const read = readYaml("name: a\nmore: { __proto__: { x: 1 }, 7: b, y: ~ }\n", "f", schema);
  if (read.t === "wrong") throw new Error(read.problems.join());
  expect(Object.entries(read.value.more ?? {})).toEqual(
    [
      ["__proto__", { x: 1 }],
      ["7", "b"],
      ["y", null],
    ].toSorted(),
  );
  expect(Object.getPrototypeOf(read.value.more)).toBe(Object.prototype);
});

test.each([
  ["aliases that name what they are in", "more: &m { x: *m }\nname: a\n"],
  ["nesting that is deeper than any document", `more: ${"{ x: ".repeat(400)}1${" }".repeat(400)}\nname: a\n`],
])("ends with %s", (_what, text) => {
  expect(problemsOf(text)).toHaveLength(1);
});

test("JSON in order is read as JSON, what is not has its place all the same, and what is long has to be JSON", () => {
  expect(readDocument('{"name":"a"}', "f", schema)).toEqual({ t: "ok", value: { name: "a" } });
  const of = (text: string) => {
    const read = readDocument(text, "f", schema);
    return read.t === "ok" ? "" : read.problems.join();
  };
  expect(of('{"name":7}')).toContain('f:1:9: "name" is 7');
  expect(of(`name: a\n#${"x".repeat(1024 * 1024)}`)).toContain("wanted JSON in order where there is more than 1 MiB");
  expect(of(`{"name":7,"more":{"x":"${"x".repeat(1024 * 1024)}"}}`)).toContain(
    'f: "name" is 7, wanted a text, wanted JSON',
  );
});
