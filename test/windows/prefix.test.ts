import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { describeWine } from "./wine/describe-wine.ts";
import { executables, onDriveZ } from "./wine/prefix.ts";

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

  test("shares its files with this side, on both drives", async () => {
    wine.prefix.write("C:\\dir\\a.txt", "content");
    const copy = wine.prefix.unixPath("C:\\dir\\b.txt");
    const ended = await wine.prefix.run("cmd", { args: ["/c", "copy", "C:\\dir\\a.txt", onDriveZ(copy)] });
    expect(ended.status).toBe(0);
    expect(readFileSync(copy, "utf8")).toBe("content");
  });
});
