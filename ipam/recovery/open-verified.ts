import { Allocator, type OpenOptions } from "../allocator.ts";
import { databaseIn, rebuildDirectoryOf } from "../data-directory.ts";
import { requireOwnPlace } from "../store/own-place.ts";
import { damageError } from "../store/sqlite-errors.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";
import { repairing } from "./repair.ts";

/**
 * As `Allocator.open`, after checking every page of the database: for long-lived processes that allocate for others.
 * Damage that no query has met yet is found here, and the database is rebuilt. Checkpoints are the caller's
 * (`StoreWatch`).
 * @param log gets in sentences what was done
 * @throws {CniError} as `Allocator.open` and `rebuildDatabase`
 */
export async function openVerified(
  dataDir: string,
  log: (line: string) => void,
  options: OpenOptions = {},
): Promise<Allocator> {
  // A file that another user has put there is refused, not set aside as damaged.
  requireOwnPlace(databaseIn(dataDir), dataDir);
  // Left by a process that was killed while it rebuilt, perhaps when only this directory was still to be removed.
  if (await exists(rebuildDirectoryOf(databaseIn(dataDir)))) {
    const { rebuildDatabase } = await import("./rebuild.ts");
    await rebuildDatabase(databaseIn(dataDir), log);
  }
  return repairing(
    () => dataDir,
    log,
    async () => {
      await requireUndamaged(databaseIn(dataDir));
      return Allocator.open(dataDir, { ...options, defersCheckpoints: true });
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
