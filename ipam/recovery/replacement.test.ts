import { copyFileSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { damageIn } from "./replacement.ts";

test("a look for damage leaves the log of a killed process as it is: it may be all that is left", () => {
  using scratch = scratchDir();
  const [live, copy] = [`${scratch.path}/live.db`, `${scratch.path}/copy.db`];
  const db = new DatabaseSync(live);
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE kept (a); INSERT INTO kept VALUES (1)");
  for (const part of ["", "-wal"]) copyFileSync(`${live}${part}`, `${copy}${part}`);
  db.close();
  const log = readFileSync(`${copy}-wal`);
  expect(log.length).toBeGreaterThan(0);
  expect(damageIn(copy)).toBeUndefined();
  expect(readFileSync(`${copy}-wal`)).toEqual(log);
});
