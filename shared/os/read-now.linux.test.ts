import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { uptime } from "node:os";
import { expect, test } from "vitest";
import { describeWith } from "../../test/support/requires.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { readSmallFile } from "./plain-file.ts";
import { isAbsentNow, openReader, ownershipNow, readFileNow, uptimeNow } from "./read-now.linux.ts";

describeWith("what a plugin reads by system calls", ["linux"], () => {
  test("is there, is not, or cannot be told", () => {
    using scratch = scratchDir();
    const at = (name: string) => `${scratch.path}/${name}`;
    writeFileSync(at("ü file"), "");
    symlinkSync(at("loop"), at("loop"));
    const absent = ["ü file", "none", "ü file/none", "none/none", "loop"].map((name) => isAbsentNow(at(name)));
    expect(absent).toEqual([false, true, true, true, false]);
  });

  test("is a file's beginning, as long as it may be", () => {
    using scratch = scratchDir();
    const path = `${scratch.path}/file`;
    writeFileSync(path, "content");
    const read = (name: string, most: number) => {
      const bytes = readFileNow(name, most);
      return bytes && new TextDecoder().decode(bytes);
    };
    expect([read(path, 100), read(path, 4), read(`${path}x`, 4), read(scratch.path, 4)]).toEqual([
      "content",
      "cont",
      undefined,
      undefined,
    ]);
    expect(openReader()(-1, new Uint8Array(1))).toBe(-1);
  });

  test("is who owns a file, through links, and who may change it", () => {
    using scratch = scratchDir();
    const [path, link] = [`${scratch.path}/file`, `${scratch.path}/link`];
    writeFileSync(path, "");
    chmodSync(path, 0o640);
    symlinkSync(path, link);
    const { uid, mode } = statSync(path);
    expect([ownershipNow(path), ownershipNow(link), ownershipNow(`${path}x`)]).toEqual([
      { uid, mode },
      { uid, mode },
      undefined,
    ]);
  });

  test("is how long the node has been up", () => {
    const before = uptime() * 1000;
    expect(uptimeNow()).toBeGreaterThan(before - 2_000);
    expect(uptimeNow()).toBeLessThan(uptime() * 1000 + 2_000);
  });

  test("is a small file alone, whatever stands in its place", () => {
    using scratch = scratchDir();
    const [path, link] = [`${scratch.path}/file`, `${scratch.path}/link`];
    writeFileSync(path, "1234");
    symlinkSync(path, link);
    mkdirSync(`${scratch.path}/dir`);
    expect([readSmallFile(path, 4), readSmallFile(link, 100)]).toEqual(["1234", "1234"]);
    expect(() => readSmallFile(path, 3)).toThrow("it is longer than 3 bytes");
    expect(() => readSmallFile(`${scratch.path}/dir`, 3)).toThrow("it is no regular file");
    expect(() => readSmallFile(`${path}x`, 3)).toThrow("ENOENT");
    writeFileSync(path, "");
    expect(readSmallFile(path, 0)).toBe("");
  });
});
