import { databaseIn } from "../data-directory.ts";
import { isDamage } from "../store/sqlite-errors.ts";

/**
 * Runs work on the leases of a data directory; if their database turns out to be damaged, rebuilds it and runs the work
 * once more. Nothing is checked beforehand, so an intact database costs nothing extra. `run` must have closed the
 * database when it fails.
 * @param log gets in sentences what was done
 * @throws what `run` throws, or `rebuildDatabase`
 */
export async function repairing<T>(
  dataDir: () => string,
  log: (line: string) => void,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (caught) {
    if (!isDamage(caught)) throw caught;
  }
  const { rebuildDatabase } = await import("./rebuild.ts");
  await rebuildDatabase(databaseIn(dataDir()), log);
  return run();
}
