import { existsSync, readFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { appendToLog, logLockMs } from "./log-file.ts";

test("a log of 5 MiB gives way to a new one, and the last of them is kept", () => {
  using scratch = scratchDir();
  const file = join(scratch.path, "log");
  writeFileSync(file, "", { mode: 0o600 });
  truncateSync(file, 5 * 1024 * 1024 - 1);
  expect(appendToLog(file, "one more")).toBeUndefined();
  expect(existsSync(`${file}.1`)).toBe(false);
  expect(appendToLog(file, "the last of it")).toBeUndefined();
  expect(existsSync(file)).toBe(false);
  expect(readFileSync(`${file}.1`, "utf8")).toMatch(/one more\nthe last of it\n$/);
  expect(existsSync(`${file}.lock`)).toBe(false);
});

test.each([
  ["of a process that rotates now stays", 0, true],
  ["of a process that was killed at it is removed, for the next call", logLockMs + 1_000, false],
])("a lock %s", (_whose, ageMs, stays) => {
  using scratch = scratchDir();
  const [file, lock] = [join(scratch.path, "log"), join(scratch.path, "log.lock")];
  writeFileSync(file, "x".repeat(20), { mode: 0o600 });
  writeFileSync(lock, "");
  const at = (Date.now() - ageMs) / 1000;
  utimesSync(lock, at, at);
  expect(appendToLog(file, "line", 10)).toBeUndefined();
  expect([existsSync(lock), existsSync(`${file}.1`)]).toEqual([stays, false]);
  appendToLog(file, "line", 10);
  expect(existsSync(`${file}.1`)).toBe(!stays);
});
