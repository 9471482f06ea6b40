import { expect, test } from "vitest";
import { CniError } from "./errors.ts";
import { reasonOf, traceOf } from "./reason.ts";

const endless: { self?: unknown } = {};
endless.self = endless;

test.each<[unknown, string]>([
  [new Error("it broke"), "it broke"],
  [new RangeError(""), "RangeError"],
  ["words", "words"],
  [undefined, "undefined"],
  [null, "null"],
  [{ message: "said so" }, "said so"],
  [{ code: 14, details: "no connection" }, "no connection"],
  [{ code: "EPIPE" }, "EPIPE"],
  [{ reason: "aborted" }, "aborted"],
  [{ a: 1 }, '{"a":1}'],
  [endless, "an object that says nothing of itself"],
])("of %o", (caught, reason) => {
  expect(reasonOf(caught)).toBe(reason);
});

test("is what an internal error says", () => {
  expect(CniError.from({ code: 14, details: "no connection" }, "ask").message).toBe("Cannot ask: no connection");
});

test("a trace has the place where an error comes from, and of anything else its reason", () => {
  const error = new Error("it broke");
  expect(traceOf(error)).toBe(error.stack);
  error.stack = "";
  expect(traceOf(error)).toBe("it broke");
  expect(traceOf({ code: "EPIPE" })).toBe("EPIPE");
});
