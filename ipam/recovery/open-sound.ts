import { Allocator, databaseIn, type OpenOptions } from "../allocator.ts";
import { damageError } from "../store/sqlite-errors.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { mending } from "./mend.ts";

/**
 * As `Allocator.open`, after a look at every page: for a process that lives long and gives out addresses for others.
 * Damage that no use has met yet is found here, and the database is rebuilt.
 * @param log gets in sentences what was done
 * @throws {CniError} as `Allocator.open` and `rebuildDatabase`
 */
export function openSound(dataDir: string, log: (line: string) => void, options: OpenOptions = {}): Promise<Allocator> {
  return mending(
    () => dataDir,
    log,
    async () => {
      await requireSound(databaseIn(dataDir));
      return Allocator.open(dataDir, options);
    },
  );
}

async function requireSound(path: string): Promise<void> {
  using snapshot = await StoreSnapshot.open(path);
  const [first] = snapshot?.damage(1) ?? [];
  if (first !== undefined) throw damageError(path, first);
}
