import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const directory = new URL("schemas/", import.meta.url);

/** The schemas before the one of now of which there is a database, as text: `schemas/<number>.sql`. */
export const schemas: readonly number[] = readdirSync(directory)
  .map((name) => Number.parseInt(name, 10))
  .sort((a, b) => a - b);

/** Makes `<dataDir>/leases.db` as an earlier Pipette left it. */
export function databaseOf(schema: number, dataDir: string): void {
  mkdirSync(dataDir, { recursive: true });
  const db = new DatabaseSync(`${dataDir}/leases.db`);
  db.exec("PRAGMA page_size = 2048; PRAGMA journal_mode = WAL");
  db.exec(readFileSync(new URL(`${schema}.sql`, directory), "utf8"));
  db.close();
}
