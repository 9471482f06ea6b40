import { existsSync, readFileSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { refuseBrokenLog, refuseEmptied, refuseLink } from "./strange-files.ts";

let scratch: ReturnType<typeof scratchDir>;
let path: string;
beforeEach(async () => {
  scratch = scratchDir();
  path = `${scratch.path}/leases.db`;
  using allocator = await Allocator.open(scratch.path);
  allocator.recordPendingDetach({ network: "net", sandboxId: "s1", ifname: "eth0" });
});
afterEach(() => scratch[Symbol.dispose]());

const open = async (dataDir = scratch.path): Promise<number> => {
  using allocator = await Allocator.open(dataDir);
  return allocator.pendingDetaches().length;
};

describe("a log", () => {
  const log = (): string => `${path}-wal`;
  const change = (at: number, by: number): void => {
    const bytes = readFileSync(log());
    bytes[at] = (bytes[at] ?? 0) ^ by;
    writeFileSync(log(), bytes);
  };

  test.each<readonly [string, () => void]>([
    ["as SQLite left it", () => undefined],
    ["that nothing was written to", () => writeFileSync(log(), "")],
    ["that is none", () => unlinkSync(log())],
    ["with another salt and frame, which its header says nothing of", () => change(40, 1)],
  ])("is sound: %s", (_name, make) => {
    make();
    expect(() => refuseBrokenLog(path)).not.toThrow();
  });

  test.each<readonly [string, () => void]>([
    ["with another beginning", () => change(0, 1)],
    ["of the other byte order", () => change(3, 1)],
    ...[4, 8, 12, 16, 20, 24, 28].map((at) => [`with another byte at ${at}`, () => change(at, 0x80)] as const),
    ["that is cut off in its header", () => truncateSync(log(), 31)],
    ["of something else", () => writeFileSync(log(), "not a log, but long enough for one".repeat(9))],
  ])("is refused: %s", async (_name, make) => {
    make();
    const is = `Cannot use the lease database "${path}": its content is damaged (its log begins with something else`;
    expect(() => refuseBrokenLog(path)).toThrow(is);
    const before = readFileSync(log());
    await expect(open()).rejects.toThrow(is);
    // For the rebuild.
    expect(readFileSync(log()).equals(before)).toBe(true);
  });
});

describe("a database", () => {
  test("that is empty is a new one, or damaged where it has a log", () => {
    expect(() => refuseEmptied(path)).not.toThrow();
    truncateSync(path, 0);
    expect(() => refuseEmptied(path)).toThrow("it is empty and its log is not");
    unlinkSync(`${path}-wal`);
    expect(() => refuseEmptied(path)).not.toThrow();
    unlinkSync(path);
    expect(() => refuseEmptied(path)).not.toThrow();
  });

  test("that somebody makes meanwhile is not taken for one that was cut off", async () => {
    const count = 3_000;
    const make = `
      const { closeSync, openSync, writeSync, writeFileSync } = require("node:fs");
      for (let i = 0; i < ${count}; i++) {
        const path = process.argv[1] + "/" + i + ".db";
        const file = openSync(path, "w");
        writeSync(file, "a first page");
        closeSync(file);
        writeFileSync(path + "-wal", "a log");
      }`;
    const maker = Bun.spawn([process.execPath, "-e", make, scratch.path], { stderr: "inherit" });
    for (let i = 0; i < count; i++)
      while (!existsSync(`${scratch.path}/${i}.db-wal`)) {
        refuseEmptied(`${scratch.path}/${i}.db`);
        if (maker.exitCode !== null) break;
      }
    expect(await maker.exited).toBe(0);
    expect(existsSync(`${scratch.path}/${count - 1}.db-wal`)).toBe(true);
  });

  test.each([
    ["a database", "leases.db"],
    ["nothing", "none.db"],
  ])("that is a link to %s is refused, and nothing is made where it leads to", async (_name, name) => {
    using other = scratchDir();
    symlinkSync(`${scratch.path}/${name}`, `${other.path}/leases.db`);
    expect(() => refuseLink(path)).not.toThrow();
    expect(() => refuseLink(`${other.path}/leases.db`)).toThrow("it is a symbolic link, wanted a file");
    await expect(open(other.path)).rejects.toMatchObject({
      code: 101,
      message: `Cannot use the lease database "${other.path}/leases.db": it is a symbolic link, wanted a file`,
    });
    expect(await open()).toBe(1);
  });
});
