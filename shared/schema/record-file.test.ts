import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { CniCode } from "../errors.ts";
import { readRecord } from "./record-file.ts";
import { integer, object, required } from "./schema.ts";

const schema = object({ version: required(integer(1, 1)) });

test.each([
  ["one of a later release", '{"version":1,"more":2}', { t: "ok", value: { version: 1 } }],
  [
    "one of another version",
    '{"version":2}',
    { t: "wrong", code: CniCode.io, is: expect.stringContaining('"version" is 2') },
  ],
  ["half a file", '{"version":', { t: "wrong", code: CniCode.decode, is: expect.any(String) }],
  ["no object", "7", { t: "wrong", code: CniCode.io, is: expect.stringContaining("the document is 7") }],
])("%s", (_what, text, found) => {
  using scratch = scratchDir();
  const path = join(scratch.path, "record.json");
  expect(readRecord(path, schema)).toEqual({ t: "absent" });
  writeFileSync(path, text);
  expect(readRecord(path, schema)).toEqual(found);
});

test("what is no file is none", () => {
  using scratch = scratchDir();
  mkdirSync(join(scratch.path, "record.json"));
  expect(readRecord(join(scratch.path, "record.json"), schema)).toMatchObject({ t: "wrong", code: CniCode.io });
});
