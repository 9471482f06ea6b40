import { Allocator, type OpenOptions } from "../allocator.ts";
import { databaseIn, rebuildDirectoryOf } from "../data-directory.ts";
import { requireOwnPlace } from "../store/own-place.ts";
import { damageError } from "../store/sqlite-errors.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { repairing } from "./repair.ts";

/**
 * As `Allocator.open`, after a look at every page: for a process that lives long and gives out addresses for others.
 * Damage that no use has met yet is found here, and the database is rebuilt.
 * @param log gets in sentences what was done
 * @throws {CniError} as `Allocator.open` and `rebuildDatabase`
 */
export async function openVerified(
  dataDir: string,
  log: (line: string) => void,
  options: OpenOptions = {},
): Promise<Allocator> {
  // What another user has put there is not set aside as damaged either.
  requireOwnPlace(databaseIn(dataDir), dataDir);
  // Of a process that was killed while it rebuilt, also in its last moment, when all was done but the clearing away.
  if (await exists(rebuildDirectoryOf(databaseIn(dataDir)))) {
    const { rebuildDatabase } = await import("./rebuild.ts");
    await rebuildDatabase(databaseIn(dataDir), log);
  }
  return repairing(
    () => dataDir,
    log,
    async () => {
      await requireUndamaged(databaseIn(dataDir));
      return Allocator.open(dataDir, options);
    },
  );
}

const exists = (path: string): Promise<boolean> =>
  Bun.file(path)
    .stat()
    .then(
      () => true,
      () => false,
    );

async function requireUndamaged(path: string): Promise<void> {
  using snapshot = await StoreSnapshot.open(path);
  const [first] = snapshot?.damage(1) ?? [];
  if (first !== undefined) throw damageError(path, first);
}
