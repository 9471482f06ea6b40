import { expect, test } from "vitest";
import { commandLine } from "./command-line.ts";

test.each([
  ["C:\\a\\p.exe", [], '"C:\\a\\p.exe"'],
  ["C:\\Program Files\\p.exe", ["agent", "--service"], '"C:\\Program Files\\p.exe" agent --service'],
  ["p", ["C:\\a b\\"], '"p" "C:\\a b\\\\"'],
  ["p", ['say "hi"', ""], '"p" "say \\"hi\\"" ""'],
  ["p", ['a\\\\"b c'], '"p" "a\\\\\\\\\\"b c"'],
])("%s %j", (program, args, wanted) => {
  expect(commandLine(program, args)).toBe(wanted);
});
