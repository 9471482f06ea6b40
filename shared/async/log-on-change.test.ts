import { expect, test } from "vitest";
import { createLogger } from "../log.ts";
import { LogOnChange } from "./log-on-change.ts";

test("a problem is logged when it comes, when its reason changes, and when it comes again", () => {
  const lines: string[] = [];
  const problem = new LogOnChange(createLogger("warn", (line) => void lines.push(line)));
  for (const reason of ["away", "away", "refused", "refused"]) problem.log("cannot", reason, { tries: 1 });
  expect(problem.reason).toBe("refused");
  problem.clear();
  expect(problem.reason).toBeUndefined();
  problem.log("cannot", "refused");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: "warn", message: "cannot", error: "away", tries: 1 },
    { error: "refused", tries: 1 },
    { error: "refused" },
  ]);
});
