import { databaseIn } from "../data-directory.ts";
import { isDamage } from "../store/sqlite-errors.ts";

/**
 * Runs what uses the leases of a data directory; where their database turns out to be damaged, has it rebuilt and runs
 * once more. Nothing is looked at beforehand: as long as all is well this costs nothing. `run` must have closed the
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
