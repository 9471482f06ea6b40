import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { beforeAll, expect, inject, test } from "vitest";
import { compileExecutable } from "../../build/bundle.ts";
import { describeWine } from "./wine/describe-wine.ts";
import { executables } from "./wine/prefix.ts";

describeWine("Bun's own variables in the environment of a Windows program", (wine) => {
  let unsealed: string;
  beforeAll(async () => {
    unsealed = `${inject("wineDirectory")}/unsealed.exe`;
    const entry = resolve(import.meta.dirname, "../../main.ts");
    await compileExecutable({ entry, base: "bun-windows-x64", outfile: unsealed, unsealed: true });
    wine.prefix.write("C:\\preload.js", 'require("node:fs").writeFileSync("C:\\\\preloaded", "")');
  });

  async function seen(program: string, env: Readonly<Record<string, string>>) {
    const preloaded = wine.prefix.unixPath("C:\\preloaded");
    const { status, stdout, stderr } = await wine.prefix.run(program, { args: ["agent", "--help"], env });
    const files = ["preloaded", "order", "digest"].filter((name) => existsSync(wine.prefix.unixPath(`C:\\${name}`)));
    for (const name of files) await wine.prefix.run("cmd", { args: ["/c", "del", `C:\\${name}`] });
    expect(existsSync(preloaded)).toBe(false);
    return { status, stdout, stderr, files };
  }

  test.each([
    ["BUN_OPTIONS", "--preload=C:\\preload.js"],
    ["BUN_BE_BUN", "1"],
    ["BUN_INSPECT", "none"],
    ["BUN_BYTECODE_ORDER_OUT", "C:\\order"],
    ["BUN_BYTECODE_DIGEST_OUT", "C:\\digest"],
    ["SIMDUTF_FORCE_IMPLEMENTATION", "none"],
    ["BUN_JSC_dumpOptions", "1"],
  ])("%s changes what Bun does, and nothing here", async (name, value) => {
    const usual = await seen(unsealed, {});
    expect(usual).toMatchObject({ status: 0, stdout: expect.stringContaining("Usage"), files: [] });
    // A program that ends at once may be faster than what Bun does beside it.
    await expect.poll(() => seen(unsealed, { [name]: value })).not.toEqual(usual);
    expect(await seen(`${executables}/pipette.exe`, { [name]: value })).toEqual(usual);
  });
});
