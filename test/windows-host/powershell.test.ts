import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openHostRunner } from "../../agent/datapath/hns/windows-host/powershell.ts";
import { maxAnswerBytes } from "../../agent/platform/run-program.ts";

/** Windows' directory, as a name: here the path below it is one file's name, with backslashes in it. */
let systemRoot = "";
const before = process.env["SystemRoot"];

beforeAll(() => {
  systemRoot = join(mkdtempSync(join(tmpdir(), "pipette-powershell-")), "Windows");
  process.env["SystemRoot"] = systemRoot;
});
afterEach(() => rmSync(`${systemRoot}.pid`, { force: true }));
afterAll(() => {
  if (before === undefined) delete process.env["SystemRoot"];
  else process.env["SystemRoot"] = before;
  rmSync(join(systemRoot, ".."), { recursive: true });
});

/** What stands where PowerShell would: a shell script that has the marker in `$m`. */
function powershell(body: string): void {
  const file = `${systemRoot}\\System32\\WindowsPowerShell\\v1.0\\powershell.exe`;
  const marker = "m=$(printf %s \"$5\" | base64 -d | tr -d '\\0' | sed -n \"s/.*\\$m='\\([^']*\\)'.*/\\1/p\")";
  writeFileSync(file, `#!/bin/sh\necho $$ > '${systemRoot}.pid'\n${marker}\n${body}\n`, { mode: 0o755 });
}

const listing = { cmdlet: "Get-NetNat", fields: ["Name"] };
const look = (deadlineMs = 20_000) => openHostRunner(deadlineMs).run("look at NetNat", [listing]);
const isAlive = (): boolean => existsSync(`/proc/${readFileSync(`${systemRoot}.pid`, "utf8").trim()}`);

describe("PowerShell's process", () => {
  test("is called by its whole path, without profile, prompt or another's modules", async () => {
    powershell(
      `printf '%s{"tables":{"0":[{"Name":"%s %s %s"}]}}%s' "$m" "$1" "$2$3$4" "$(printf %s "$PSModulePath" | tr '\\\\' /)" "$m"`,
    );
    expect((await look()).get(0)).toEqual([
      {
        Name: `-NoLogo -NoProfile-NonInteractive-EncodedCommand ${systemRoot}/System32/WindowsPowerShell/v1.0/Modules`,
      },
    ]);
  });

  test.each([
    ["does nothing and ends with 0", "exit 0", "PowerShell answered nothing,"],
    ["is not PowerShell", "echo hello", 'PowerShell answered only "hello"'],
    ["fails", "echo no >&2; exit 3", 'PowerShell answered nothing; its exit status was 3; it said "no"'],
    [
      "answers and fails",
      `printf '%s{"tables":{"0":[]}}%s' "$m" "$m"; exit 1`,
      "a whole answer; its exit status was 1",
    ],
    ["is killed in mid-answer", `printf '%s{"tables":' "$m"; kill -9 $$`, "half an answer"],
  ])("that %s is a failure", async (_what, body, message) => {
    powershell(body);
    await expect(look()).rejects.toThrow(`Cannot look at NetNat: PowerShell answered `);
    await expect(look()).rejects.toThrow(message);
  });

  test("that hangs is killed at the deadline, even after a whole answer", async () => {
    for (const answer of ["", `printf '%s{"tables":{"0":[]}}%s' "$m" "$m"; `]) {
      powershell(`${answer}exec sleep 60`);
      const started = performance.now();
      await expect(look(700)).rejects.toThrow("it had not ended after 700 ms and was killed");
      expect(performance.now() - started).toBeLessThan(20_000);
      expect(isAlive()).toBe(false);
    }
  });

  test("whose child keeps the pipe open does not keep the agent", async () => {
    powershell(`sleep 60 & echo $! > '${systemRoot}.pid'`);
    const started = performance.now();
    await expect(look(300)).rejects.toThrow("it had not ended after 300 ms");
    expect(performance.now() - started).toBeLessThan(20_000);
    process.kill(Number(readFileSync(`${systemRoot}.pid`, "utf8")));
  });

  test("that never ends its answer is killed", async () => {
    powershell("exec yes");
    await expect(look()).rejects.toThrow(`it said more than ${maxAnswerBytes} bytes and was killed`);
    expect(isAlive()).toBe(false);
  });

  test("that cannot be started is a failure that says so", async () => {
    powershell("");
    // More than the system takes for one argument.
    const statement = { cmdlet: "New-NetNat", args: { Name: "x".repeat(3_000_000) } };
    await expect(openHostRunner(20_000).run("make a NetNat", [statement])).rejects.toThrow(
      "Cannot make a NetNat: PowerShell answered nothing; the system could not start its process (E2BIG), wanted",
    );
  });

  test("that is not there is a failure", async () => {
    powershell("");
    rmSync(`${systemRoot}\\System32\\WindowsPowerShell\\v1.0\\powershell.exe`);
    await expect(look()).rejects.toThrow(
      /Cannot look at NetNat: PowerShell answered nothing; there is no ".*powershell\.exe"/,
    );
  });
});
