import { DatabaseSync } from "node:sqlite";
import { compileExecutable } from "../../../build/bundle.ts";

/** Compiles `least.ts` as the product is compiled; answers the executable's path. */
export async function compileLeast(scratch: string): Promise<string> {
  const outfile = `${scratch}/least`;
  const entry = new URL("least.ts", import.meta.url).pathname;
  await compileExecutable({ entry, base: "bun-linux-x64", outfile });
  return outfile;
}

/**
 * The database of `least.ts`. It stays open meanwhile, as the agent keeps its own: so the program's end does not have
 * to move the log and wait for the disk.
 */
export function openLeastDatabase(dataDir: string): Disposable {
  const db = new DatabaseSync(`${dataDir}/least.db`);
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE lease (owner TEXT PRIMARY KEY, address TEXT NOT NULL)");
  return { [Symbol.dispose]: () => db.close() };
}
