import { expect, test } from "vitest";
import { CniError } from "./errors.ts";
import { limits } from "./limits.ts";
import { createLogger } from "./log.ts";
import { brief } from "./printable.ts";
import { GrpcCode, RpcError } from "./rpc/rpc-error.ts";
import { Fields, show } from "./schema/json-fields.ts";

const hostile = 'a\u001b[2J\n{"level":"error"}\u009b\u202e\ud800';
const harmless = /^[\x20-\x7e]*$/;

test("what an error quotes commands no terminal and forges no line", () => {
  const error = new CniError(7, `Cannot read "${hostile}"`, { details: `one\n${hostile}` });
  expect(error.message).toBe('Cannot read "a\\u001b[2J\\u000a{"level":"error"}\\u009b\\u202e\\ud800"');
  // Details have lines: a stack, what a plugin said.
  expect(error.details.split("\n").length).toBe(3);
  expect(error.details).toMatch(/^[\n\x20-\x7e]*$/);
  expect(new RpcError(GrpcCode.internal, hostile).message).toMatch(harmless);
  expect(show(hostile)).toMatch(harmless);
});

test("an error is as long as a sentence, whatever it quotes", () => {
  const long = "x".repeat(100_000);
  const error = new CniError(7, `Cannot read "${long}"`, { details: long });
  expect([error.message.length, error.details.length]).toEqual([limits.errorChars, limits.errorChars]);
  expect(new RpcError(GrpcCode.internal, long).message.length).toBe(limits.errorChars);
  expect(() => Fields.parse(`{${long}`)).toThrow(/^.{30,300}, wanted one JSON object$/);
});

test("what is quoted is not cut through a character", () => {
  expect(brief("ab\u{1f600}cdefg", 6)).toBe("ab...");
  expect(brief("ab\u{1f600}cdefg", 7)).toBe("ab\u{1f600}...");
  expect(brief("abc", 3)).toBe("abc");
});

test("a line of the log is one line, and harmless to look at", () => {
  const lines: string[] = [];
  createLogger("info", (line) => lines.push(line)).info(hostile, { name: hostile });
  expect(lines.join("\n")).toMatch(harmless);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ message: hostile, name: hostile });
});
