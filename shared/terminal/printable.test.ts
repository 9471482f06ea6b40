import { expect, test } from "vitest";
import { formatJson, printable } from "./printable.ts";

test.each([
  ["web-1 ünïcode 日本", "web-1 ünïcode 日本"],
  ["\u001b[2J", "\\u001b[2J"],
  ["a\nb\r\tc", "a\\u000ab\\u000d\\u0009c"],
  ["\u009b31m\u007f", "\\u009b31m\\u007f"],
  ["\u202eevil\u2066", "\\u202eevil\\u2066"],
  ["\u2028\ufeff", "\\u2028\\ufeff"],
  ["\u{e0001}", "\\udb40\\udc01"],
])("%j", (text, wanted) => {
  expect(printable(text)).toBe(wanted);
});

test("JSON is harmless too, means the same, and keeps large numbers", () => {
  const value = { name: "\u001b[2J\u009b\u202e\n", tag: "\u{e0001}" };
  const text = formatJson(value);
  expect(text).toMatch(/^[\n -~]*$/);
  expect(JSON.parse(text)).toEqual(value);
  expect(formatJson({ free: 18446744073709551614n })).toBe('{\n  "free": 18446744073709551614\n}\n');
});
