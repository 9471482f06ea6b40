import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { MemoryStore } from "../../test/fakes/memory-store.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { directoryAt, hostLocalDirectory, isSettled, readRecord, type TakeOverRecord, writeRecord } from "./record.ts";

test.each<readonly [TakeOverRecord | undefined, boolean]>([
  [undefined, false],
  [{ t: "none" }, true],
  [{ t: "taken", generation: 12, directory: "/a b/c\nd" }, true],
  [{ t: "exported", generation: 0, directory: "/x" }, false],
])("of a network's past is kept %j, and nothing to import: %s", (record, settled) => {
  const store = new MemoryStore();
  if (record !== undefined) store.transaction((): void => writeRecord(store, "net", record));
  expect(readRecord(store, "net")).toEqual(record);
  expect([isSettled(store, "net"), isSettled(store, "other")]).toEqual([settled, false]);
});

test.each(["taken", "taken x /d", "mistaken 3 /d", "taken 3 "])("what is no record is none: %j", (mark) => {
  const store = new MemoryStore();
  store.transaction((): void => store.setMark("host-local net", mark));
  expect(readRecord(store, "net")).toEqual({ t: "none" });
});

test("a directory is there, is none, or cannot be told", async () => {
  using scratch = scratchDir();
  const at = (name: string) => `${scratch.path}/${name}`;
  mkdirSync(at("dir"));
  writeFileSync(at("file"), "");
  symlinkSync(at("loop"), at("loop"));
  const found = await Promise.all(["dir", "file", "none", "file/none"].map((name) => directoryAt(at(name))));
  expect(found).toEqual([at("dir"), undefined, undefined, undefined]);
  await expect(directoryAt(at("loop"))).rejects.toMatchObject({
    code: 5,
    message: expect.stringMatching(/^Cannot look for leases of host-local: ".*loop" cannot be reached \(.*ELOOP/),
  });
  expect(await hostLocalDirectory(scratch.path, "dir")).toBe(at("dir"));
  expect(await hostLocalDirectory(scratch.path, "file")).toBeUndefined();
});
