import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { expect, inject, test } from "vitest";
import { describeWine } from "./wine/describe-wine.ts";
import { executables, onDriveZ, WinePrefix } from "./wine/prefix.ts";
import { processesOf } from "./wine/wine-server.ts";

describeWine("a Windows under Wine", (wine) => {
  test("runs our executable, which says on standard output what its version is", async () => {
    const ended = await wine.prefix.run(`${executables}/pipette.exe`, { env: { CNI_COMMAND: "VERSION" }, stdin: "{}" });
    expect(ended).toMatchObject({ status: 0, stderr: "" });
    expect(JSON.parse(ended.stdout)).toMatchObject({ supportedVersions: expect.arrayContaining(["1.1.0"]) });
  });

  test("is Windows 10 for our executable", async () => {
    const ended = await wine.prefix.run("cmd", { args: ["/c", "ver"] });
    expect(ended.stdout).toMatch(/Microsoft Windows 10\./);
  });

  test("kills a program whose time is up, and says what it had said", async () => {
    const options = { args: ["/c", "echo so far& pause"], timeoutMs: 4_000 };
    await using program = wine.prefix.start("cmd", { ...options, stdin: 0 });
    await expect(program.ended).rejects.toThrow(/not over after 4000 ms\nso far/);
    expect(existsSync(`/proc/${program.pid}`)).toBe(false);
  });

  test("takes every process along when it ends, one that its server knows nothing of yet too", async () => {
    const other = await WinePrefix.make(inject("wineDirectory"));
    const unknown = spawn("sleep", ["60"], { env: { PATH: "/usr/bin:/bin", WINEPREFIX: other.directory } });
    await once(unknown, "spawn");
    expect(processesOf(other.directory)).toContain(unknown.pid);
    const ended = once(unknown, "exit");
    await other[Symbol.asyncDispose]();
    expect(await ended).toEqual([null, "SIGKILL"]);
    expect(processesOf(other.directory)).toEqual([]);
  });

  test("shares its files with this side, on both drives", async () => {
    wine.prefix.write("C:\\dir\\a.txt", "content");
    const copy = wine.prefix.unixPath("C:\\dir\\b.txt");
    const ended = await wine.prefix.run("cmd", { args: ["/c", "copy", "C:\\dir\\a.txt", onDriveZ(copy)] });
    expect(ended.status).toBe(0);
    expect(readFileSync(copy, "utf8")).toBe("content");
  });
});
