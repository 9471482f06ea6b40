import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { applicationId, migrations } from "./schema.ts";
import { SqliteStore } from "./sqlite-store.ts";

function schemaOf(path: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  const tables = db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").all();
  const version = db.prepare("PRAGMA user_version").get();
  db.close();
  return { tables, version };
}

test.each(migrations.map((_, i) => i + 1))("a database of schema %i becomes what a new one is", async (version) => {
  using scratch = scratchDir();
  const old = `${scratch.path}/old.db`;
  const db = new DatabaseSync(old);
  for (const step of migrations.slice(0, version)) db.exec(step);
  db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version}`);
  db.close();
  for (const path of [old, `${scratch.path}/new.db`]) (await SqliteStore.open(path, scratch.path))[Symbol.dispose]();
  expect(schemaOf(old)).toEqual(schemaOf(`${scratch.path}/new.db`));
});
