import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, expect, test } from "vitest";
import type { Command, CommandAnswer } from "../windows/stubs/commands.ts";
import { describeWine } from "../windows/wine/describe-wine.ts";
import type { Ended } from "../windows/wine/program.ts";
import { readScript } from "./read-script.ts";

/** Names that PowerShell's reader, or that of a command line, would like to take apart. */
const hostile = [
  "it's $env:PATH $(exit) `n \u2018x\u2019 \u201a\u201b",
  '"a" & b | c; %PATH% ^ 网络 🚦',
  "[br*]?'' {0} \\",
];
const listing = { cmdlet: "Get-NetNat", fields: ["Name"] };
const system = "C:\\windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe";

describeWine("the compiled command runner", (wine) => {
  beforeAll(() => {
    wine.prefix.write("C:\\test\\made-below.txt", "");
    const output = wine.prefix.unixPath("C:\\test\\program.exe");
    const flags = ["build", "--compile", "--bytecode", "--format=esm", "--minify", "--target=bun-windows-x64"];
    execFileSync(process.execPath, [...flags, join(import.meta.dirname, "program.ts"), "--outfile", output]);
  });
  beforeEach(() => {
    wine.stubs.commands.log.length = 0;
  });

  const run = (statements: readonly object[], deadlineMs = 20_000): Promise<Ended> => {
    wine.prefix.write("C:\\test\\statements.json", JSON.stringify(statements));
    const args = ["C:\\test\\statements.json", String(deadlineMs)];
    return wine.prefix.run(wine.prefix.unixPath("C:\\test\\program.exe"), { args });
  };
  /** What answers in PowerShell's place, given this call's marker. */
  const answer = (answering: (marker: string) => CommandAnswer | Promise<CommandAnswer>): void => {
    wine.stubs.commands.answerWith = ({ script }: Command) => answering(readScript(script).marker);
  };

  test("calls PowerShell by its whole path, and every value survives the way there and back", async () => {
    answer((marker) => {
      const rows = hostile.map((Name) => ({ Name }));
      return { status: 0, stdout: `${marker}${JSON.stringify({ tables: { 1: rows } })}${marker}` };
    });
    const ended = await run([{ cmdlet: "New-NetNat", args: { Names: hostile, Name: hostile[0] } }, listing]);
    expect(ended).toMatchObject({ status: 0, stderr: "" });
    expect(JSON.parse(ended.stdout)).toEqual([[1, hostile.map((Name) => ({ Name }))]]);
    const [command] = wine.stubs.commands.log;
    expect(command?.program).toBe("powershell");
    expect(command?.args.slice(0, 4)).toEqual(["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand"]);
    const [statement] = readScript(command?.script ?? "").statements;
    expect(statement?.calls).toEqual([{ cmdlet: "New-NetNat", args: { Names: hostile, Name: hostile[0] } }]);
  });

  const whole = (marker: string): string => `${marker}{"tables":{"0":[]}}${marker}`;
  const failures: [string, (marker: string) => CommandAnswer, string][] = [
    ["silence with status 0", () => ({ status: 0 }), "PowerShell answered nothing, wanted a whole answer"],
    ["another program's answer", () => ({ status: 0, stdout: "OK\r\n" }), 'PowerShell answered only "OK"'],
    ["half an answer", (marker) => ({ status: 0, stdout: whole(marker).slice(0, -3) }), "half an answer"],
    ["a failure behind a whole answer", (m) => ({ status: 7, stdout: whole(m) }), "its exit status was 7"],
    ["errors", () => ({ status: 1, stderr: "Zugriff verweigert ü\r\n" }), 'it said "Zugriff verweigert ü"'],
    ["too much", (m) => ({ status: 0, stdout: whole(m) + "x".repeat(5_000_000) }), "it said more than 4194304 bytes"],
  ];
  test.each(failures)("takes %s for a failure", async (_what, answering, message) => {
    answer(answering);
    const ended = await run([listing]);
    expect([ended.status, ended.stdout]).toEqual([1, ""]);
    expect(ended.stderr).toMatch(/^Cannot try it: PowerShell answered /);
    expect(ended.stderr).toContain(message);
  });

  /** Long enough for a process of Wine to start on a busy machine. */
  const hangMs = 4_000;

  test("kills a PowerShell that hangs, and goes on", async () => {
    const hung = Promise.withResolvers<CommandAnswer>();
    answer(() => hung.promise);
    const ended = await run([listing], hangMs);
    expect(ended.stderr).toContain(`it had not ended after ${hangMs} ms and was killed`);
    expect(wine.stubs.commands.log).toHaveLength(1);
    // Wine's server gives a killed process a second to end by itself before it kills the Unix process.
    await expect.poll(() => processesOf(wine.prefix.directory, "powershell.exe")).toEqual([]);
    hung.resolve({ status: 0 });
  });

  test("says where there is no PowerShell, and does not look for another", async () => {
    rmSync(wine.prefix.unixPath(system.replace("System32", "system32")));
    const ended = await run([listing]);
    expect(ended.stderr).toMatch(/^Cannot try it: PowerShell answered nothing; there is no "C:.*powershell\.exe"/);
    expect(wine.stubs.commands.log).toEqual([]);
  });
});

/** Programs of this name that run in a prefix. */
function processesOf(prefix: string, name: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      const [line, environment] = ["cmdline", "environ"].map((file) => readFileSync(`/proc/${pid}/${file}`, "utf8"));
      return line?.includes(name) && environment?.includes(prefix);
    } catch {
      return false;
    }
  });
}
