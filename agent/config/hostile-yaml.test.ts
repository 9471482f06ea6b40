import { expect, test } from "vitest";
import { parseAgentConfig } from "./parse-agent-config.ts";

test("a problem is one line that can be shown, and a file of nothing but faults has a bounded list", () => {
  const hostile = parseAgentConfig('networks: []\n"a\\e[2J\\n\\u202e": 1\n', "f");
  expect(hostile.t === "wrong" && hostile.problems.every((problem) => /^[\x20-\x7e]*$/.test(problem))).toBe(true);
  const noise = parseAgentConfig(Array.from({ length: 5000 }, (_, i) => `key${i}: 1`).join("\n"), "f");
  expect(noise.t === "wrong" && noise.problems.length).toBe(101);
});

test.each(["[", "- ", "{a: "])("nesting without end is refused in words: %s", (open) => {
  const read = parseAgentConfig(`networks: ${open === "- " ? "\n" : ""}${open.repeat(30_000)}`, "f");
  const text = read.t === "wrong" ? read.problems.join("\n") : "";
  expect(text).toContain("it is nested too deep, wanted YAML 1.2");
  expect(text).not.toContain("call stack");
});
