import { describe, expect, test } from "vitest";
import { createHostRunner, type Ended } from "../../agent/datapath/hns/windows-host/powershell.ts";
import { quote, renderPipeline, renderScript } from "../../agent/datapath/hns/windows-host/script.ts";
import { readScript } from "./read-script.ts";

const hostile = [
  "plain",
  "",
  "two words",
  "it's",
  "''",
  "'; Remove-Item C:\\ -Recurse; '",
  "\u2019; exit; \u2018",
  "\u201a\u201b'",
  '"double" $env:PATH $(calc) `n',
  "a|b;c&d#e{f}[g]%h%*?",
  "\\",
  "Städtisches Netz 网络 🚦",
  "$m+$m",
];

describe("values", () => {
  test.each(hostile)("%j goes in and comes out as one value", (value) => {
    const statement = {
      cmdlet: "New-NetNat",
      args: { Name: value, List: [value, "x", value] },
      where: { Name: value },
    };
    const [read] = readScript(renderScript([statement], `#${crypto.randomUUID()}#`)).statements;
    expect(read?.calls).toEqual([
      { cmdlet: "New-NetNat", args: { Name: value, List: [value, "x", value] } },
      { cmdlet: "Where-Object", args: { Property: "Name", EQ: true, Value: value } },
    ]);
  });

  test.each(["a\nb", "a\0b", "\u007f", "\ud800"])("%j is refused: no name on Windows is so", (value) => {
    expect(() => quote(value)).toThrow("Broken invariant: a value in a script is printable text");
  });

  test("names of cmdlets, parameters and properties are words", () => {
    for (const cmdlet of ["", "a b", "a;b", "'a'", "1a", "$a"])
      expect(() => renderPipeline({ cmdlet })).toThrow("plain word");
    expect(() => renderPipeline({ cmdlet: "A", args: { "B;C": 1 } })).toThrow("plain word");
    expect(() => renderScript([{ cmdlet: "A", fields: ["B;C"] }], "#")).toThrow("plain word");
    expect(() => renderPipeline({ cmdlet: "A", args: { B: 1.5 } })).toThrow("whole");
  });

  test("a pipeline reads as a person would type it", () => {
    const statement = {
      cmdlet: "Get-VMSwitch",
      through: { cmdlet: "Get-VMSwitchExtension" },
      where: { SwitchName: "it's" },
      into: { cmdlet: "Set-X", args: { A: true, B: 12, C: ["x"], D: false } },
    };
    expect(renderPipeline(statement)).toBe(
      "Get-VMSwitch|Get-VMSwitchExtension|Where-Object -Property 'SwitchName' -EQ -Value 'it''s'|Set-X -A:$true -B 12 -C @('x') -D:$false",
    );
  });
});

describe("only a whole answer to this very question counts", () => {
  const ended = (stdout: string, failure = "", stderr = ""): Ended => ({ stdout, stderr, failure });
  const runner = (answer: (marker: string) => Ended) =>
    createHostRunner(async (script) => answer(readScript(script).marker));
  const listing = { cmdlet: "Get-NetNat", fields: ["Name"] };
  const rows = '{"tables":{"0":[{"Name":"a"}]}}';

  test("rows of a listing, and nothing for an action", async () => {
    const run = runner((marker) => ended(`noise ${marker}{"tables":{"1":[{"Name":"a","L":["","b"]}]}}${marker}\r\n`));
    const answer = await run.run("look", [{ cmdlet: "Set-X" }, { ...listing, fields: ["Name", "L[]"] }]);
    expect([...answer]).toEqual([[1, [{ Name: "a", L: ["b"] }]]]);
    expect(await runner(() => ended("")).run("look", [])).toEqual(new Map());
  });

  test("an array that PowerShell has wrapped is an array", async () => {
    const run = runner((marker) => ended(`${marker}{"tables":{"0":{"value":[{"Name":"a"}],"Count":1}}}${marker}`));
    expect((await run.run("look", [listing])).get(0)).toEqual([{ Name: "a" }]);
  });

  const none: [string, (marker: string) => Ended, string][] = [
    ["silence with exit status 0", () => ended(""), "PowerShell answered nothing"],
    ["another answer", () => ended("OK"), 'PowerShell answered only "OK"'],
    ["an answer to another question", () => ended(`#0#${rows}#0#`), "PowerShell answered only"],
    ["a marker alone", (marker) => ended(marker), "PowerShell answered half an answer"],
    ["half an answer", (marker) => ended(`${marker}${rows.slice(0, 20)}`), "PowerShell answered half an answer"],
    ["no JSON", (marker) => ended(`${marker}yes${marker}`), 'PowerShell answered no JSON but "yes"'],
    ["JSON of another shape", (marker) => ended(`${marker}[1]${marker}`), "PowerShell answered JSON of another shape"],
    [
      "numbers for texts",
      (marker) => ended(`${marker}{"tables":{"0":[{"Name":1}]}}${marker}`),
      "JSON of another shape",
    ],
    ["a table less", (marker) => ended(`${marker}{"tables":{}}${marker}`), "PowerShell answered without table 0"],
    [
      "a whole answer of a process that was killed",
      (marker) => ended(`${marker}${rows}${marker}`, "it was killed"),
      "PowerShell answered a whole answer; it was killed",
    ],
    [
      "what it said instead",
      () => ended("", "its exit status was 1", "Access\r\n denied"),
      'status was 1; it said "Access denied"',
    ],
  ];
  test.each(none)("%s is a failure", async (_what, answer, message) => {
    const failure = runner(answer).run("make the NetNat", [listing]);
    await expect(failure).rejects.toThrow("Cannot make the NetNat: PowerShell answered ");
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.toMatchObject({ code: 102, details: "Get-NetNat" });
  });

  test("a cmdlet that says no is named, with its words, and what a missing one wants", async () => {
    const said = (id: string) => (marker: string) =>
      ended(`${marker}${JSON.stringify({ at: 1, error: "Zugriff verweigert.\r\n", id })}${marker}`);
    const statements = [listing, { ...listing, into: { cmdlet: "Remove-NetNat" } }];
    await expect(runner(said("E5")).run("undo", statements)).rejects.toThrow(
      'Cannot undo: Remove-NetNat says "Zugriff verweigert.", wanted success',
    );
    await expect(runner(said("CommandNotFoundException")).run("undo", statements)).rejects.toThrow(
      "wanted the Windows feature that this cmdlet comes with",
    );
  });

  test("no two questions have the same marker", async () => {
    const seen = new Set<string>();
    const run = runner((marker) => {
      seen.add(marker);
      return ended(`${marker}{"tables":{}}${marker}`);
    });
    for (let i = 0; i < 10; i++) await run.run("do", [{ cmdlet: "Set-X" }]);
    expect(seen.size).toBe(10);
  });
});
