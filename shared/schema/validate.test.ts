import { describe, expect, test } from "vitest";
import {
  anyText,
  boolean,
  defaulted,
  defaultsOf,
  integer,
  keysOf,
  list,
  object,
  oneOf,
  opaque,
  optional,
  required,
  type Schema,
  section,
  text,
  variants,
} from "./schema.ts";
import { Findings, type ValidateOptions, validate } from "./validate.ts";

const size = text("a size such as 5k", (given) => (/^\dk$/.test(given) ? Number(given[0]) * 1000 : undefined));
const shelf = object({
  size: required(size),
  colour: defaulted(oneOf(["red", "blue"]), "red"),
  books: optional(list(object({ pages: required(integer(1, 9)) }), 1, 2)),
});

function problemsOf(schema: Schema, value: unknown, options?: ValidateOptions): readonly string[] {
  const read = validate(schema, value, options);
  return read.t === "ok" ? [] : read.issues.map(({ text: problem }) => problem);
}

const readOf = <T>(schema: Schema<T>, value: unknown, options?: ValidateOptions): T => {
  const read = validate(schema, value, options);
  if (read.t === "wrong") throw new Error(read.issues.map(({ text: problem }) => problem).join());
  return read.value;
};

describe("validate", () => {
  test("makes of texts what they stand for, and fills in defaults", () => {
    expect(readOf(shelf, { size: "5k" })).toEqual({ size: 5000, colour: "red" });
    expect(readOf(shelf, { size: "1k", colour: "blue", books: [{ pages: 9 }] })).toEqual({
      size: 1000,
      colour: "blue",
      books: [{ pages: 9 }],
    });
  });

  test("leaves what it was given as it was", () => {
    const given = Object.freeze({ size: "5k", books: Object.freeze([Object.freeze({ pages: 1 })]) });
    expect(readOf(shelf, given).books).toEqual([{ pages: 1 }]);
  });

  test.each<[unknown, string[]]>([
    [7, ["the document is 7, wanted a map with the keys size, colour, books"]],
    [{}, ['"size" is missing']],
    [null, ['"size" is missing']],
    [{ size: 5 }, ['"size" is 5, wanted a size such as 5k']],
    [{ size: null }, ['"size" is empty, wanted a size such as 5k']],
    [{ size: "5k", colour: "green" }, ['"colour" is "green", wanted one of "red", "blue"']],
    [
      { size: "5k", colours: 1 },
      ['"colours" is an unknown key (did you mean "colour"?), wanted one of size, colour, books'],
    ],
    [{ size: "5k", books: [] }, ['"books" is a list of 0 entries, wanted a list of 1 to 2 entries']],
    [{ size: "5k", books: {} }, ['"books" is a map, wanted a list of 1 to 2 entries']],
    [
      { size: "5k", books: [{ pages: 0 }, { pages: 1.5 }] },
      [0, 1].map((i) => `"books[${i}].pages" is ${[0, 1.5][i]}, wanted a whole number from 1 to 9`),
    ],
    [{ size: "5k", books: [3] }, ['"books[0]" is 3, wanted a map with the keys pages']],
  ])("tells every fault of %j", (value, problems) => {
    expect(problemsOf(shelf, value)).toEqual(problems);
  });

  test("takes keys that every object has for keys like others", () => {
    for (const key of ["constructor", "__proto__", "toString"])
      expect(problemsOf(shelf, JSON.parse(`{ "size": "1k", "${key}": {} }`))).toEqual([
        expect.stringContaining(`"${key}" is an unknown key`),
      ]);
  });

  test("stops looking once there are enough issues", () => {
    const many = list(boolean, 0, 100_000);
    expect(problemsOf(many, Array(100_000).fill(0), { maxIssues: 3 })).toHaveLength(3);
  });

  test("passes over what a later release may have added, where it is told to", () => {
    expect(readOf(shelf, { size: "1k", later: true }, { unknownKeys: "ignored" })).toEqual({
      size: 1000,
      colour: "red",
    });
    const wrong = { size: "1k", colour: 7, books: 8 };
    expect(problemsOf(shelf, wrong)).toHaveLength(2);
    expect(readOf(shelf, wrong, { wrongOptional: "ignored" })).toEqual({ size: 1000, colour: "red" });
    expect(problemsOf(shelf, { size: 1 }, { wrongOptional: "ignored" })).toHaveLength(1);
  });
});

describe("variants", () => {
  const shape = variants("type", "what it is", {
    circle: object({ radius: required(integer(1, 9)), name: optional(anyText) }),
    square: object({ side: defaulted(integer(1, 9), 2) }),
  });

  test("have the keys of their kind", () => {
    expect(readOf(shape, { type: "circle", radius: 3 })).toEqual({ type: "circle", radius: 3 });
    expect(readOf(shape, { type: "square" })).toEqual({ type: "square", side: 2 });
  });

  test.each<[unknown, string[]]>([
    [{}, ['"type" is missing']],
    [
      { type: "line", radius: 0 },
      ['"type" is "line", wanted one of "circle", "square"', '"radius" is 0, wanted a whole'],
    ],
    [{ type: "circle" }, ['the document is without "radius", wanted it where "type" is "circle"']],
    [{ type: "square", radius: 1 }, ['"radius" is set, wanted it left out where "type" is "square"']],
    [{ type: "square", colour: 1 }, ['"colour" is an unknown key, wanted one of type, radius, name, side']],
    [[], ["the document is a list of 0 entries, wanted a map with the keys type"]],
  ])("tell what is wrong with %j", (value, problems) => {
    const found = problemsOf(shape, value);
    expect(found).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });

  test("show the keys of all kinds", () => {
    expect(keysOf(object({ shapes: required(list(shape, 0, 1)) }))).toEqual([
      ...["shapes", "shapes.type", "shapes.radius", "shapes.name", "shapes.side"],
    ]);
  });
});

test("a section may be left out, and is its defaults then", () => {
  const room = object({ shelf: section(object({ colour: defaulted(anyText, "red"), mark: optional(anyText) }), "") });
  expect(readOf(room, {})).toEqual({ shelf: { colour: "red" } });
  expect(defaultsOf(room)).toEqual({ shelf: { colour: "red" } });
});

test("what is passed on as it is says itself what is wrong, with its path", () => {
  const settings = object({
    of: required(opaque("settings", (value) => ("x" in value ? undefined : '"$.x" is missing'))),
  });
  expect(readOf(settings, { of: { x: 1, y: [2] } })).toEqual({ of: { x: 1, y: [2] } });
  expect(problemsOf(settings, { of: {} })).toEqual(['"of.x" is missing, wanted settings']);
  expect(problemsOf(settings, { of: [] })).toEqual(['"of" is a list of 0 entries, wanted settings']);
});

test("what does not fit together is told with its path, and quoted as it was written", () => {
  const findings = new Findings({ shelves: [{ size: "5K" }] });
  const at = ["shelves", 0, "size"];
  findings.add(at, `${findings.written(at)}, wanted less`);
  findings.add([], "too much");
  expect(findings.issues.map(({ text: problem }) => problem)).toEqual([
    '"shelves[0].size" is "5K", wanted less',
    "the document is too much",
  ]);
});
